// Lists the members of the structs of bundle.h and cache_record.h, in the way of ir/module/fields.h. A bundle has no text form and no
// digest of its own.
#pragma once

#include "ir/module/fields.h"
#include "serde/bundle.h"

namespace fusebox {

inline constexpr FieldUse kEncodedAlone = {.digested = false, .printed = false};
// A record holds one of two things, so neither changes alone.
inline constexpr FieldUse kEncodedInstead = {.digested = false, .printed = false, .derived = true};

template <>
struct Fields<Digest> {
  static constexpr std::string_view kName = "Digest";
  static constexpr auto kList =
      std::tuple(field("low", &Digest::low, kEncodedAlone), field("high", &Digest::high, kEncodedAlone));
};

template <>
struct Fields<StageRecord> {
  static constexpr std::string_view kName = "StageRecord";
  static constexpr auto kList = std::tuple(field("stage", &StageRecord::stage, kEncodedAlone),
                                           field("module", &StageRecord::module, kEncodedAlone));
};

template <>
struct Fields<StageDigest> {
  static constexpr std::string_view kName = "StageDigest";
  static constexpr auto kList = std::tuple(field("name", &StageDigest::name, kEncodedAlone),
                                           field("digest", &StageDigest::digest, kEncodedAlone));
};

template <>
struct Fields<KeyValue> {
  static constexpr std::string_view kName = "KeyValue";
  static constexpr auto kList =
      std::tuple(field("key", &KeyValue::key, kEncodedAlone), field("value", &KeyValue::value, kEncodedAlone));
};

template <>
struct Fields<InputRecord> {
  static constexpr std::string_view kName = "InputRecord";
  static constexpr auto kList =
      std::tuple(field("spec", &InputRecord::spec, kEncodedAlone), field("bytes", &InputRecord::bytes, kEncodedAlone));
};

template <>
struct Fields<OutputRecord> {
  static constexpr std::string_view kName = "OutputRecord";
  static constexpr auto kList = std::tuple(
      field("name", &OutputRecord::name, kEncodedAlone), field("dtype", &OutputRecord::dtype, kEncodedAlone),
      field("shape", &OutputRecord::shape, kEncodedAlone), field("strides", &OutputRecord::strides, kEncodedAlone),
      field("digest", &OutputRecord::digest, kEncodedAlone));
};

template <>
struct Fields<Failure> {
  static constexpr std::string_view kName = "Failure";
  static constexpr auto kList =
      std::tuple(field("code", &Failure::code, kEncodedAlone), field("message", &Failure::message, kEncodedAlone),
                 field("place", &Failure::place, kEncodedAlone));
};

template <>
struct Fields<CrossingLayout> {
  static constexpr std::string_view kName = "CrossingLayout";
  static constexpr auto kList = std::tuple(
      field("segment", &CrossingLayout::segment, kEncodedAlone), field("value", &CrossingLayout::value, kEncodedAlone),
      field("dtype", &CrossingLayout::dtype, kEncodedAlone), field("shape", &CrossingLayout::shape, kEncodedAlone),
      field("strides", &CrossingLayout::strides, kEncodedAlone));
};

template <>
struct Fields<Rank> {
  static constexpr std::string_view kName = "Rank";
  static constexpr auto kList = std::tuple(
      field("executor", &Rank::executor, kEncodedAlone), field("inputs", &Rank::inputs, kEncodedAlone),
      field("outputs", &Rank::outputs, kEncodedAlone), field("failure", &Rank::failure, kEncodedAlone),
      field("crossings", &Rank::crossings, kEncodedAlone), field("environment", &Rank::environment, kEncodedAlone));
};

template <>
struct Fields<Artifact> {
  static constexpr std::string_view kName = "Artifact";
  static constexpr auto kList = std::tuple(
      field("kernel", &Artifact::kernel, kEncodedAlone), field("architecture", &Artifact::architecture, kEncodedAlone),
      field("cuda", &Artifact::cuda, kEncodedAlone), field("binary", &Artifact::binary, kEncodedAlone));
};

template <>
struct Fields<KernelImage> {
  static constexpr std::string_view kName = "KernelImage";
  static constexpr auto kList = std::tuple(
      field("kernel", &KernelImage::kernel, kEncodedAlone), field("source", &KernelImage::source, kEncodedAlone),
      field("entry", &KernelImage::entry, kEncodedAlone),
      field("architecture", &KernelImage::architecture, kEncodedAlone),
      field("options", &KernelImage::options, kEncodedAlone), field("compiler", &KernelImage::compiler, kEncodedAlone),
      field("numerics", &KernelImage::numerics, kEncodedAlone),
      field("registers", &KernelImage::registers, kEncodedAlone),
      field("local_bytes", &KernelImage::local_bytes, kEncodedAlone),
      field("shared_bytes", &KernelImage::shared_bytes, kEncodedAlone),
      field("binary", &KernelImage::binary, kEncodedAlone),
      field("is_cooperative", &KernelImage::is_cooperative, kEncodedAlone),
      field("opts_in_shared", &KernelImage::opts_in_shared, kEncodedAlone),
      field("is_dependent", &KernelImage::is_dependent, kEncodedAlone));
};

template <>
struct Fields<LaunchInput> {
  static constexpr std::string_view kName = "LaunchInput";
  static constexpr auto kList =
      std::tuple(field("dtype", &LaunchInput::dtype, kEncodedAlone), field("rank", &LaunchInput::rank, kEncodedAlone),
                 field("is_scalar", &LaunchInput::is_scalar, kEncodedAlone),
                 field("is_open", &LaunchInput::is_open, kEncodedAlone));
};

template <>
struct Fields<LaunchSlot> {
  static constexpr std::string_view kName = "LaunchSlot";
  static constexpr auto kList =
      std::tuple(field("dtype", &LaunchSlot::dtype, kEncodedAlone), field("rank", &LaunchSlot::rank, kEncodedAlone));
};

template <>
struct Fields<LaunchError> {
  static constexpr std::string_view kName = "LaunchError";
  static constexpr auto kList = std::tuple(field("code", &LaunchError::code, kEncodedAlone),
                                           field("message", &LaunchError::message, kEncodedAlone),
                                           field("place", &LaunchError::place, kEncodedAlone));
};

template <>
struct Fields<LaunchRecord> {
  static constexpr std::string_view kName = "LaunchRecord";
  // The segments of a compiled fusion say how many kernels there are.
  static constexpr FieldUse kCounted = {.digested = false, .printed = false, .derived = true};
  static constexpr auto kList = std::tuple(
      field("registers", &LaunchRecord::registers, kEncodedAlone), field("kernels", &LaunchRecord::kernels, kCounted),
      field("inputs", &LaunchRecord::inputs, kEncodedAlone),
      field("allocated", &LaunchRecord::allocated, kEncodedAlone),
      field("errors", &LaunchRecord::errors, kEncodedAlone), field("names", &LaunchRecord::names, kEncodedAlone),
      field("code", &LaunchRecord::code, kEncodedAlone));
};

template <>
struct Fields<SignatureAxis> {
  static constexpr std::string_view kName = "SignatureAxis";
  static constexpr auto kList = std::tuple(field("most", &SignatureAxis::most, kEncodedAlone),
                                           field("divisor", &SignatureAxis::divisor, kEncodedAlone),
                                           field("stride", &SignatureAxis::stride, kEncodedAlone),
                                           field("stride_divisor", &SignatureAxis::stride_divisor, kEncodedAlone));
};

template <>
struct Fields<SignatureInput> {
  static constexpr std::string_view kName = "SignatureInput";
  static constexpr auto kList = std::tuple(
      field("name", &SignatureInput::name, kEncodedAlone), field("dtype", &SignatureInput::dtype, kEncodedAlone),
      field("is_scalar", &SignatureInput::is_scalar, kEncodedAlone),
      field("most", &SignatureInput::most, kEncodedAlone), field("divisor", &SignatureInput::divisor, kEncodedAlone),
      field("align", &SignatureInput::align, kEncodedAlone), field("axes", &SignatureInput::axes, kEncodedAlone));
};

template <>
struct Fields<SignatureFact> {
  static constexpr std::string_view kName = "SignatureFact";
  static constexpr auto kList = std::tuple(field("name", &SignatureFact::name, kEncodedAlone),
                                           field("value", &SignatureFact::value, kEncodedAlone));
};

template <>
struct Fields<InputSignature> {
  static constexpr std::string_view kName = "InputSignature";
  static constexpr auto kList = std::tuple(field("inputs", &InputSignature::inputs, kEncodedAlone),
                                           field("facts", &InputSignature::facts, kEncodedAlone));
};

template <>
struct Fields<CompiledFusion> {
  static constexpr std::string_view kName = "CompiledFusion";
  static constexpr auto kList = std::tuple(field("program", &CompiledFusion::program, kEncodedAlone),
                                           field("scheduled", &CompiledFusion::scheduled, kEncodedAlone),
                                           field("code", &CompiledFusion::code, kEncodedAlone),
                                           field("plans", &CompiledFusion::plans, kEncodedAlone),
                                           field("index_bits", &CompiledFusion::index_bits, kEncodedAlone),
                                           field("images", &CompiledFusion::images, kEncodedAlone),
                                           field("signature", &CompiledFusion::signature, kEncodedAlone),
                                           field("launch", &CompiledFusion::launch, kEncodedAlone));
};

template <>
struct Fields<KeyPart> {
  static constexpr std::string_view kName = "KeyPart";
  static constexpr auto kList =
      std::tuple(field("name", &KeyPart::name, kEncodedAlone), field("bytes", &KeyPart::bytes, kEncodedAlone));
};

template <>
struct Fields<CacheRecord> {
  static constexpr std::string_view kName = "CacheRecord";
  static constexpr auto kList = std::tuple(field("key", &CacheRecord::key, kEncodedAlone),
                                           field("compiled", &CacheRecord::compiled, kEncodedInstead),
                                           field("image", &CacheRecord::image, kEncodedInstead));
};

template <>
struct Fields<Bundle> {
  static constexpr std::string_view kName = "Bundle";
  static constexpr auto kList = std::tuple(
      field("program", &Bundle::program, kEncodedAlone), field("stages", &Bundle::stages, kEncodedAlone),
      field("steps", &Bundle::steps, kEncodedAlone), field("options", &Bundle::options, kEncodedAlone),
      field("digests", &Bundle::digests, kEncodedAlone), field("ranks", &Bundle::ranks, kEncodedAlone),
      field("artifacts", &Bundle::artifacts, kEncodedAlone), field("records", &Bundle::records, kEncodedAlone));
};

static_assert(names_all_members<Digest>() && names_all_members<StageRecord>() && names_all_members<StageDigest>() &&
              names_all_members<KeyValue>() && names_all_members<InputRecord>() && names_all_members<OutputRecord>() &&
              names_all_members<Failure>() && names_all_members<CrossingLayout>() && names_all_members<Rank>() &&
              names_all_members<Artifact>() && names_all_members<KernelImage>() && names_all_members<LaunchInput>() &&
              names_all_members<LaunchSlot>() && names_all_members<LaunchError>() &&
              names_all_members<LaunchRecord>() && names_all_members<SignatureAxis>() &&
              names_all_members<SignatureInput>() && names_all_members<SignatureFact>() &&
              names_all_members<InputSignature>() && names_all_members<CompiledFusion>() &&
              names_all_members<KeyPart>() && names_all_members<CacheRecord>() && names_all_members<Bundle>());

}  // namespace fusebox
