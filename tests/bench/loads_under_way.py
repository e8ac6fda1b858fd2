"""How many bytes of loads each thread of a kernel has under way at once, as the compiler has ordered them. Needs no GPU.

    python3 tests/bench/loads_under_way.py corpus/schedules/softmax.fir
    python3 tests/bench/loads_under_way.py mine.fir --fusebox build/bin/fusebox --architecture sm_90a

A kernel that waits for memory needs some 16 to 32 KB of loads under way on each multiprocessor. A thread has as many as its unrolled loads ask for
only if it has registers for them: where `bound_launch` leaves a thread 32 registers, the compiler may load one 16-bit number after another, and the
kernel takes twice as long. Without a number of blocks, the compiler may use fewer registers than there are, and fewer loads too.

Prints for each kernel its registers, the bytes that it spills, the most bytes of loads that a thread has issued and not read, and these bytes times the
threads that a multiprocessor holds by its registers. Needs NVRTC, which the Python environment of the tests has, and `nvdisasm` on the PATH or in
the environment (PyPI: nvidia-cuda-nvdisasm).
"""

import argparse
import ctypes
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
REGISTERS, THREADS, BLOCKS = 65536, 2048, 32  # of a multiprocessor
OPTIONS = re.findall(r'"(-[^"]+)"', (ROOT / "codegen/cuda_options.cc").read_text())  # of kernels
INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?\s*([A-Z0-9_.]+) ?(.*?);")


def bytes_of(op):
    """The bytes that a load of this name reads."""
    for suffix, width in {".128": 16, ".64": 8, ".U16": 2, ".S16": 2, ".U8": 1, ".S8": 1}.items():
        if suffix in op:
            return width
    return 4


def most_under_way(sass):
    """The most bytes that loads from global memory have issued before their registers are read, in any stretch without a label."""
    most, loads = 0, {}  # by the load's first register: its bytes and registers
    for line in sass.splitlines():
        if line.startswith("."):
            loads = {}
        if not (match := INSTRUCTION.match(line)):
            continue
        op, registers = match[1], [int(r) for r in re.findall(r"R(\d+)", match[2])]
        if op.startswith("LDG"):
            width = bytes_of(op)
            loads[registers[0]] = width, range(registers[0], registers[0] + max(1, width // 4))
            most = max(most, sum(width for width, _ in loads.values()))
        else:
            read = registers if op.startswith("ST") else registers[1:]
            loads = {first: load for first, load in loads.items() if not any(r in load[1] for r in read)}
    return most


def nvrtc():
    places = [p for path in sys.path for p in pathlib.Path(path).glob("nvidia/*/lib/libnvrtc.so.*") if "alt" not in p.name]
    if not places:
        sys.exit("loads_under_way: no NVRTC is there; run this in the tests' Python environment")
    ctypes.CDLL(str(next(places[0].parent.glob("libnvrtc-builtins.so.*"))), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(places[0]))


def text_of(library, program, size, read):
    count = ctypes.c_size_t()
    getattr(library, size)(program, ctypes.byref(count))
    buffer = ctypes.create_string_buffer(count.value)
    getattr(library, read)(program, buffer)
    return buffer.raw


def compiled(library, text, architecture):
    """The binary of a kernel, and what the assembler says of its registers."""
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    headers = next((ROOT / "codegen").rglob("types.cuh")).parent
    options = [f"--gpu-architecture={architecture}", f"-I{headers}", "--ptxas-options=-v", *OPTIONS]
    failed = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*(o.encode() for o in options)))
    log = text_of(library, program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog").decode().rstrip("\0")
    if failed:
        sys.exit(f"loads_under_way: NVRTC refuses the kernel: {log}")
    return text_of(library, program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN"), log


def disassembled(tool, binary):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        return subprocess.run([tool, "-c", file.name], capture_output=True, text=True, check=True).stdout


def told(text, binary, log, tool):
    registers, spilled = int(re.search(r"Used (\d+) registers", log)[1]), re.search(r"(\d+) bytes spill stores", log)
    each = most_under_way(disassembled(tool, binary))
    result = f"{registers} registers, {spilled[1] if spilled else 0} bytes spilled, {each} bytes of a thread under way"
    if bounds := re.search(r"__launch_bounds__\((\d+)", text):
        threads = int(bounds[1])
        held = min(BLOCKS, THREADS // threads, REGISTERS // ((registers + 7) // 8 * 8 * threads))
        result += f", {each * threads * held / 1024:.1f} KB of a multiprocessor by {held} blocks of {threads} threads"
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--fusebox", default=ROOT / "build/bin/fusebox")
    parser.add_argument("--plan", choices=["automatic", "unfused"])
    parser.add_argument("--device", default="h100")
    parser.add_argument("--architecture", default="sm_90a")
    options = parser.parse_args()
    tool = shutil.which("nvdisasm") or next((str(p) for path in sys.path for p in pathlib.Path(path).glob("nvidia/*/bin/nvdisasm")), None)
    if not tool:
        sys.exit("loads_under_way: there is no nvdisasm; pip install nvidia-cuda-nvdisasm")
    library = nvrtc()
    for file in options.files:
        more = ["--plan", options.plan] if options.plan else []
        shown = subprocess.run([options.fusebox, "show", "--level", "cuda", "--device", options.device, *more, file], capture_output=True, text=True)
        if shown.returncode:
            sys.exit(shown.stderr)
        for text in re.split(r"(?m)^(?=// @)", shown.stdout):
            if "__global__" in text:
                print(f"{file} {text.split(maxsplit=2)[1]}: {told(text, *compiled(library, text, options.architecture), tool)}")


if __name__ == "__main__":
    main()
