#!/usr/bin/env python3
"""Reports how long the source files are, and names those over the limits of the style: header 300, source 600 lines."""

import pathlib
import statistics
import subprocess

names = subprocess.run(
    ["git", "ls-files", "-co", "--exclude-standard", "*.h", "*.cc", "*.cuh", "*.inc", "*.py"],
    capture_output=True, text=True, check=True).stdout.split()
lines = {name: len(pathlib.Path(name).read_bytes().splitlines()) for name in names if pathlib.Path(name).exists()}
counts = sorted(lines.values())
short = sum(count < 400 for count in counts)
print(f"sizes: {len(counts)} files, {sum(counts)} lines, median {statistics.median(counts):.0f}, "
      f"{100 * short / len(counts):.0f} % under 400")
for name, count in sorted(lines.items(), key=lambda item: -item[1]):
    if count > (300 if name.endswith(".h") else 600):
        print(f"  long: {name} {count}")
