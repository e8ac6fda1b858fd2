#!/usr/bin/env python3
"""Fits the polynomials of exact_*.cuh and prints their coefficients. It needs mpmath.

    fit_elementary.py [NAME...]     all, or those named

A fit is the minimax polynomial of its powers, by Remez's exchange on a fine grid. Its coefficients are rounded to the
float format one after another, from the lowest power up, and the later ones are fitted again each time. The printed
exponents are log2 of the largest weighted error, before and after rounding. Another grid changes the last digits.
"""

import sys

import mpmath
from mpmath import mp, mpf

mp.dps = 110


def rounded(c, bits):
    if c == 0:
        return mpf(0)
    m, e = mpmath.frexp(c)
    return mpmath.ldexp(mpmath.nint(mpmath.ldexp(m, bits)), int(e) - bits)


def spread(extrema, error, count):
    """The extrema that alternate, `count` of them: the smallest go, at an end alone and inside with a neighbour."""
    while len(extrema) > count:
        size = [abs(error[i]) for i in extrema]
        if len(extrema) == count + 1:
            extrema.pop(0 if size[0] < size[-1] else -1)
            continue
        k = size.index(min(size))
        if k in (0, len(extrema) - 1):
            extrema.pop(k)
            continue
        neighbour = k + 1 if size[k + 1] < size[k - 1] else k - 1
        for i in sorted((k, neighbour), reverse=True):
            extrema.pop(i)
    return extrema


def exchange(reference, error):
    """The reference with the worst point of all in the place of a neighbour of the same sign."""
    worst = max(range(len(error)), key=lambda i: abs(error[i]))
    if worst in reference:
        return None
    same = lambda k: error[worst] * error[reference[k]] > 0
    if worst < reference[0]:
        return [worst] + (reference[1:] if same(0) else reference[:-1])
    if worst > reference[-1]:
        return (reference[:-1] if same(-1) else reference[1:]) + [worst]
    k = max(j for j in range(len(reference)) if reference[j] <= worst)
    result = list(reference)
    result[k if same(k) else k + 1] = worst
    return result


def remez(powers, xs, fs, ws):
    """Coefficients of the powers, and the largest of |w (f - sum c x^p)|."""
    n, count = len(powers), len(xs)
    phi = [[x**p for p in powers] for x in xs]
    reference = [int(round((count - 1) * (1 - mpmath.cos(mpmath.pi * k / n)) / 2)) for k in range(n + 1)]
    best = None
    for _ in range(150):
        a, b = mpmath.matrix(n + 1, n + 1), mpmath.matrix(n + 1, 1)
        for row, i in enumerate(reference):
            for column in range(n):
                a[row, column] = ws[i] * phi[i][column]
            a[row, n] = (-1) ** row
            b[row] = ws[i] * fs[i]
        solution = mpmath.lu_solve(a, b)
        c, level = [solution[k] for k in range(n)], abs(solution[n])
        error = [w * (f - sum(ci * p for ci, p in zip(c, row))) for w, f, row in zip(ws, fs, phi)]
        worst = max(abs(e) for e in error)
        if best is None or worst < best[1]:
            best = (c, worst)
        if worst <= level * mpf("1.001"):
            break
        extrema = []
        for i, e in enumerate(error):
            if extrema and error[extrema[-1]] * e > 0:
                if abs(e) > abs(error[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        reference = spread(extrema, error, n + 1) if len(extrema) > n else exchange(reference, error)
        if reference is None:
            break
    return best


def fit(name, bits, f, powers, low, high, weight, fixed=None):
    """`fixed` has the powers whose coefficients are given."""
    count = max(200, 16 * len(powers))
    low, high = mpf(low), mpf(high)
    xs = [(low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * k / (count - 1)) for k in range(count)]
    xs = [x for x in xs if abs(x) > mpf(10) ** -12]
    ws = [abs(weight(x)) for x in xs]
    fs = [f(x) - sum(c * x**p for p, c in (fixed or {}).items()) for x in xs]
    rest, result, first = list(powers), {}, None
    while rest:
        at = rest[0]  # divided out: else the error has a zero at 0 that no alternation counts
        c, error = remez(
            [p - at for p in rest],
            xs,
            [v / x**at for v, x in zip(fs, xs)],
            [w * abs(x) ** at for w, x in zip(ws, xs)],
        )
        first = error if first is None else first
        result[at] = rounded(c[0], bits)
        fs = [v - result[at] * x**at for v, x in zip(fs, xs)]
        rest = rest[1:]
    last = max(abs(w * v) for w, v in zip(ws, fs))
    print(f"{name}: 2^{float(mpmath.log(first, 2)):.2f}, rounded 2^{float(mpmath.log(last, 2)):.2f}")
    for p in powers:
        print(f"  x^{p}: {float(result[p]).hex()}")


LN2, E2 = mpmath.log(2), 1 / mpmath.log(2)
HALF_TURN, ROOT2 = mpmath.pi / 4 * mpf("1.0001"), mpmath.sqrt(2)
LOGS = (1 / ROOT2 - 1 - mpf("1e-5"), ROOT2 - 1 + mpf("1e-5"))
# u = 2f / (2 + f) for 1 + f up to √2
U = 2 * (ROOT2 - 1) / (ROOT2 + 1) * mpf("1.0001")


def one_over(f):
    return lambda x: 1 / f(x)


def odd(last):
    return list(range(3, last + 1, 2))


def log_of_u(u):
    return mpmath.log((1 + u / 2) / (1 - u / 2))


def erfc(name, bits, high, last, pairs):
    """e^a²·erfc(a) / (1 - q) in q = (a - 4) / (a + 4)"""

    def f(q):
        a = 4 * (1 + q) / (1 - q)
        return mpmath.exp(a * a) * mpmath.erfc(a) / (1 - q)

    fixed = {}
    for p in range(pairs):  # the lowest coefficients have two parts
        c = f(mpf(0)) if p == 0 else mpmath.diff(f, 0)
        top = rounded(c, bits)
        fixed[p] = top + rounded(c - top, bits)
        print(f"{name}: x^{p} {float(top).hex()} and {float(rounded(c - top, bits)).hex()}")
    low = mpf("0.84") if bits == 53 else mpf("0.86")
    q = lambda a: (a - 4) / (a + 4)
    fit(name, bits, f, list(range(pairs, last + 1)), q(low), q(mpf(high)), one_over(f), fixed)


def log2_rest(name, bits, last):
    top = rounded(E2 / 12, bits)
    cube = top + rounded(E2 / 12 - top, bits)
    print(f"{name}: u^3 {float(top).hex()} and {float(cube - top).hex()}")
    fit(name, bits, lambda u: E2 * log_of_u(u) - u * E2, list(range(5, last + 1, 2)), "1e-4", U, lambda u: 1 / (u * E2), {3: cube})


H = LN2 / 2 * mpf("1.001")
W = LN2 * mpf("1.002")
FITS = {
    "exp_float": lambda n: fit(n, 24, mpmath.exp, range(1, 8), -W, W, one_over(mpmath.exp), {0: 1}),
    "exp_half_float": lambda n: fit(n, 24, mpmath.exp, range(1, 7), -H, H, one_over(mpmath.exp), {0: 1}),
    "exp2_float": lambda n: fit(n, 24, lambda x: mpf(2) ** x, range(1, 8), -1, 1, lambda x: mpf(2) ** -x, {0: 1}),
    "exp2_half_float": lambda n: fit(n, 24, lambda x: mpf(2) ** x, range(1, 7), -0.5, 0.5, lambda x: mpf(2) ** -x, {0: 1}),
    "exp2_double": lambda n: fit(n, 53, lambda x: mpf(2) ** x, range(1, 12), -0.5, 0.5, lambda x: mpf(2) ** -x, {0: 1}),
    "tanh_float": lambda n: fit(n, 24, mpmath.expm1, range(2, 7), -H, H, one_over(mpmath.expm1), {1: 1}),
    "expm1_float": lambda n: fit(n, 24, mpmath.expm1, range(2, 8), -H, H, one_over(mpmath.expm1), {1: 1}),
    "expm1_double": lambda n: fit(n, 53, mpmath.expm1, range(2, 13), -H, H, one_over(mpmath.expm1), {1: 1}),
    "sinh_float": lambda n: fit(n, 24, mpmath.sinh, odd(9), 0, 1, one_over(mpmath.sinh), {1: 1}),
    "sinh_double": lambda n: fit(n, 53, mpmath.sinh, odd(15), 0, 1, one_over(mpmath.sinh), {1: 1}),
    "log_float": lambda n: fit(n, 24, mpmath.log1p, range(2, 11), *LOGS, one_over(mpmath.log1p), {1: 1}),
    "log_double": lambda n: fit(n, 53, log_of_u, odd(17), "1e-4", U, lambda u: 1 / u, {1: 1}),
    "sin_float": lambda n: fit(n, 24, mpmath.sin, odd(7), 0, HALF_TURN, one_over(mpmath.sin), {1: 1}),
    "sin_double": lambda n: fit(n, 53, mpmath.sin, odd(13), 0, HALF_TURN, one_over(mpmath.sin), {1: 1}),
    "cos_float": lambda n: fit(n, 24, mpmath.cos, range(4, 9, 2), 0, HALF_TURN, one_over(mpmath.cos), {0: 1, 2: mpf(-0.5)}),
    "cos_double": lambda n: fit(n, 53, mpmath.cos, range(4, 15, 2), 0, HALF_TURN, one_over(mpmath.cos), {0: 1, 2: mpf(-0.5)}),
    "tan_float": lambda n: fit(n, 24, mpmath.tan, odd(15), 0, HALF_TURN, one_over(mpmath.tan), {1: 1}),
    "tan_double": lambda n: fit(n, 53, mpmath.tan, odd(31), 0, HALF_TURN, one_over(mpmath.tan), {1: 1}),
    "erf_float": lambda n: fit(n, 24, lambda x: mpmath.erf(x) - x, range(1, 14, 2), 0, 1.125, one_over(mpmath.erf)),
    "erf_double": lambda n: fit(n, 53, lambda x: mpmath.erf(x) - x, range(1, 24, 2), 0, 1, one_over(mpmath.erf)),
    "erf_far_float": lambda n: fit(n, 24, lambda y: mpmath.erfc(y + 2.5), range(0, 14), -1.375, 1.43, lambda y: mpf(1)),
    "erfc_float": lambda n: erfc(n, 24, "10.3", 9, 0),
    "erfc_double": lambda n: erfc(n, 53, "27.3", 20, 2),
    "asin_float": lambda n: fit(n, 24, mpmath.asin, odd(11), 0, "0.5001", one_over(mpmath.asin), {1: 1}),
    "asin_double": lambda n: fit(n, 53, mpmath.asin, odd(25), 0, "0.5001", one_over(mpmath.asin), {1: 1}),
    "atan_float": lambda n: fit(n, 24, mpmath.atan, odd(19), 0, 1, one_over(mpmath.atan), {1: 1}),
    "atan_double": lambda n: fit(n, 53, mpmath.atan, odd(41), 0, 1, one_over(mpmath.atan), {1: 1}),
    "pow_float": lambda n: log2_rest(n, 24, 9),
    "pow_double": lambda n: log2_rest(n, 53, 19),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        FITS[name](name)
