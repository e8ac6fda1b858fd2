#include "replay/cuda/compile.h"

#include <algorithm>

#include "ir/table/error.h"

namespace fusebox {
namespace {

// sm_90a
bool is_architecture(std::string_view text) {
  if (!text.starts_with("sm_") || text.size() < 5 || text.size() > 8) return false;
  text.remove_prefix(3);
  if (text.back() == 'a' || text.back() == 'f') text.remove_suffix(1);
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// `kernel.cu(12): error: identifier "x" is undefined`
std::string first_error(const std::string& log) {
  size_t at = log.find("error");
  if (at == std::string::npos) at = 0;
  const size_t begin = log.rfind('\n', at) == std::string::npos ? 0 : log.rfind('\n', at) + 1;
  std::string line = log.substr(begin, log.find('\n', at) - begin);
  return line.empty() ? "the compiler gave no reason" : line;
}

class NvrtcProgram {
 public:
  NvrtcProgram(const NvrtcApi& nvrtc, const CudaCompileRequest& request) : nvrtc_(nvrtc) {
    std::vector<std::string> names, texts;
    for (const CudaHeaderText& h : request.headers) {
      names.emplace_back(h.name);
      texts.emplace_back(h.text);
    }
    std::vector<const char*> name_pointers, text_pointers;
    for (size_t i = 0; i < names.size(); ++i) {
      name_pointers.push_back(names[i].c_str());
      text_pointers.push_back(texts[i].c_str());
    }
    const std::string text(request.text), name(request.name);
    const int code = nvrtc.nvrtcCreateProgram(&program_, text.c_str(), name.c_str(), static_cast<int>(names.size()),
                                              text_pointers.data(), name_pointers.data());
    if (code != 0)
      throw Error(ErrorCode::kCompileFailure, "nvrtc did not take the program: result " + std::to_string(code));
  }
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;
  ~NvrtcProgram() { nvrtc_.nvrtcDestroyProgram(&program_); }

  int compile(const std::vector<std::string>& options) {
    std::vector<const char*> pointers;
    for (const std::string& o : options) pointers.push_back(o.c_str());
    return nvrtc_.nvrtcCompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
  }
  std::string log() {
    size_t size = 0;
    nvrtc_.nvrtcGetProgramLogSize(program_, &size);
    std::string text(size, '\0');
    if (size > 0) nvrtc_.nvrtcGetProgramLog(program_, text.data());
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
  }
  std::string binary() {
    size_t size = 0;
    if (nvrtc_.nvrtcGetCUBINSize(program_, &size) != 0 || size == 0)
      throw Error(ErrorCode::kCompileFailure, "the compiler gave no binary");
    std::string bytes(size, '\0');
    nvrtc_.nvrtcGetCUBIN(program_, bytes.data());
    return bytes;
  }

 private:
  const NvrtcApi& nvrtc_;
  void* program_ = nullptr;
};

}  // namespace

CudaBinary compile_with(const NvrtcApi& nvrtc, const CudaCompileRequest& request) {
  if (!is_architecture(request.architecture))
    throw Error(ErrorCode::kBadInput,
                "\"" + std::string(request.architecture) + "\" is no architecture; write one such as sm_90a");
  std::vector<std::string> options(request.options.begin(), request.options.end());
  options.insert(options.begin(), "--gpu-architecture=" + std::string(request.architecture));
  NvrtcProgram program(nvrtc, request);
  const int code = program.compile(options);
  const std::string log = program.log();
  if (code != 0)
    throw Error(ErrorCode::kCompileFailure, "nvrtc for " + std::string(request.architecture) + ": " + first_error(log),
                std::string(request.name));
  return {program.binary(), log};
}

}  // namespace fusebox
