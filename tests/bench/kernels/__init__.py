"""The parts of gpu_kernels.py: `programs` reads .fir files, `rows` is the table, `reference` and `peers` compute its ops, `clock` measures."""
