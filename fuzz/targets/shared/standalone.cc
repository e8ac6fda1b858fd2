// Runs a libFuzzer target without libFuzzer, so that every build smoke tests it:
//
//   fuzz_NAME [-runs=N] [-seed=N] [-max_len=N] FILE_OR_FOLDER…
//
// Runs every file, then N inputs that the target's own mutator and crossover (or flips of bytes) make from the files
// and from one another. Prints what it did. A failure aborts in the target; with -artifact=PATH, the
// input that caused it is saved there.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/base/random_source.h"

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
__attribute__((weak)) size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                                       uint8_t* out, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
}

namespace {

using Input = std::vector<uint8_t>;

fusebox::fuzz::RandomSource choices(1);
Input running;
std::string artifact;

void keep_running_input(int signal_number) {
  if (std::FILE* f = artifact.empty() ? nullptr : std::fopen(artifact.c_str(), "wb")) {
    std::fwrite(running.data(), 1, running.size(), f);
    std::fclose(f);
  }
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void run(const Input& input) {
  running = input;
  // A copy of the exact size, so that a sanitizer sees reads beyond its end.
  const Input exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

Input read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Input next_input(const std::vector<Input>& pool, size_t max_size) {
  Input input = choices.pick(pool);
  if (LLVMFuzzerCustomCrossOver && pool.size() > 1 && choices.one_in(5)) {
    const Input& other = choices.pick(pool);
    Input out(max_size);
    out.resize(LLVMFuzzerCustomCrossOver(input.data(), input.size(), other.data(), other.size(), out.data(), max_size,
                                         static_cast<unsigned>(choices.next())));
    return out;
  }
  const size_t size = std::min(input.size(), max_size);
  input.resize(max_size);
  input.resize(LLVMFuzzerCustomMutator
                   ? LLVMFuzzerCustomMutator(input.data(), size, max_size, static_cast<unsigned>(choices.next()))
                   : LLVMFuzzerMutate(input.data(), size, max_size));
  return input;
}

}  // namespace

size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  if (size == 0 || (size < max_size && choices.one_in(4))) {
    const size_t at = choices.below(size + 1);
    std::memmove(data + at + 1, data + at, size - at);
    data[at] = static_cast<uint8_t>(choices.below(256));
    return size + 1;
  }
  const size_t at = choices.below(size);
  if (size > 1 && choices.one_in(4)) {
    std::memmove(data + at, data + at + 1, size - at - 1);
    return size - 1;
  }
  data[at] = choices.one_in(2) ? static_cast<uint8_t>(choices.below(256))
                               : static_cast<uint8_t>(data[at] ^ (1 << choices.below(8)));
  return size;
}

int main(int argc, char** argv) {
  size_t runs = 0, max_size = 4096;
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto number = [&](const char* name) { return word.starts_with(name); };
    const auto value = word.substr(std::min(word.find('=') + 1, word.size()));
    if (number("-runs="))
      runs = std::strtoull(value.c_str(), nullptr, 10);
    else if (number("-seed="))
      choices = fusebox::fuzz::RandomSource(std::strtoull(value.c_str(), nullptr, 10));
    else if (number("-max_len="))
      max_size = std::strtoull(value.c_str(), nullptr, 10);
    else if (number("-artifact="))
      artifact = value;
    else
      paths.emplace_back(word);
  }
  std::signal(SIGABRT, keep_running_input);
  std::signal(SIGSEGV, keep_running_input);
  std::vector<std::filesystem::path> files;
  for (const auto& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Input> pool;
  for (const auto& file : files) {
    pool.push_back(read(file));
    run(pool.back());
  }
  if (pool.empty()) pool.emplace_back();
  const size_t seeds = pool.size();
  for (size_t i = 0; i < runs; ++i) {
    Input input = next_input(pool, max_size);
    run(input);
    // Mutate mutations too, in a pool that stays small.
    if (pool.size() < seeds + 64)
      pool.push_back(std::move(input));
    else
      pool[seeds + choices.below(64)] = std::move(input);
  }
  std::printf("%zu files, %zu mutated inputs\n", files.size(), runs);
  return 0;
}
