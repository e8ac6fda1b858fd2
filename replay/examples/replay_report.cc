// Replays a bundle and reports each stage. Exits 1 if one is not as recorded.
//
//   replay_report swish.fuse
#include <cstdio>
#include <fusebox/replay/data/file.h>
#include <fusebox/replay/record/replay.h>
#include <fusebox/serde/decode.h>

using namespace fusebox;

int main(int argc, char** argv) try {
  if (argc != 2) return std::fputs("usage: replay_report BUNDLE\n", stderr), 2;

  const std::string bytes = read_text_file(argv[1]);
  const Replay result = replay(decode_bundle(bytes_of(bytes)));

  std::printf("@%s on %s\n", result.run.fusion.name.c_str(), std::string(text(result.run.executor)).c_str());
  for (const StageVerdict& s : result.stages)
    std::printf("  %-12s %s%s%s\n", s.stage.c_str(), std::string(text(s.verdict)).c_str(), s.why.empty() ? "" : ": ",
                s.why.c_str());
  if (const StageVerdict* first = result.first_difference())
    return std::printf("%s differs\n%s", first->stage.c_str(), first->difference.c_str()), 1;
  std::printf("as recorded\n");
  return 0;
} catch (const fusebox::Error& e) {
  return std::fprintf(stderr, "%s %s: %s\n", code_text(e.code).c_str(), e.place.c_str(), e.what()), 2;
}
