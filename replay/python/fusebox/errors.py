"""The errors of the package. Each is a `FuseboxError`, and so a RuntimeError; some are also the class that Python's users expect."""

from __future__ import annotations


class FuseboxError(RuntimeError):
    """A coded error: `code` such as "E0203", `place` the value, step or field with the error (or ""), `message` a sentence. An error whose
    code has a class of its own in `CLASSES` is that class, and so a ValueError, TypeError or IndexError too. A name that `fd.ops` or
    `fd.sched` does not have is an AttributeError."""

    def __new__(cls, code: str, message: str, place: str = "") -> FuseboxError:
        return super().__new__(CLASSES.get(code, cls) if cls is FuseboxError else cls, code, message, place)

    def __init__(self, code: str, message: str, place: str = "") -> None:
        super().__init__(code, message, place)
        self.code = code
        self.message = message
        self.place = place

    def __str__(self) -> str:
        return f"{self.code} {self.message}" + (f" (at {self.place})" if self.place else "")


class FuseboxValueError(FuseboxError, ValueError):
    """A FuseboxError about a wrong value."""


class FuseboxTypeError(FuseboxError, TypeError):
    """A FuseboxError about a value of the wrong kind."""


class FuseboxIndexError(FuseboxError, IndexError):
    """A FuseboxError about an axis or an index out of range."""


class FuseboxAttributeError(FuseboxValueError, AttributeError):
    """A FuseboxError about a name that `fd.ops` or `fd.sched` does not have. `hasattr` and `getattr` with a default treat it as any missing name."""


class FuseboxInputError(FuseboxValueError, FuseboxTypeError):
    """A FuseboxError about an input of a run: of the wrong kind, dtype or shape."""


# The class of each error code. ValueError: a wrong value, text or file. TypeError: a value of the wrong kind or dtype, or a missing one.
# IndexError: an axis or an index out of range. FuseboxError alone: what no other argument mends (support that is missing, an order of calls,
# limits, devices, files), findings of the checked executor, and faults of Fusebox.
CLASSES: dict[str, type[FuseboxError]] = {
    # text and bytes
    "E0101": FuseboxValueError,
    "E0102": FuseboxValueError,
    "E0103": FuseboxValueError,
    "E0104": FuseboxValueError,
    "E0105": FuseboxValueError,
    "E0110": FuseboxValueError,
    "E0111": FuseboxValueError,
    "E0112": FuseboxValueError,
    "E0113": FuseboxError,
    "E0114": FuseboxError,
    # programs
    "E0201": FuseboxValueError,
    "E0202": FuseboxTypeError,
    "E0203": FuseboxValueError,
    "E0204": FuseboxTypeError,
    "E0205": FuseboxValueError,
    "E0206": FuseboxIndexError,
    "E0207": FuseboxValueError,
    "E0208": FuseboxError,
    "E0209": FuseboxValueError,
    "E0210": FuseboxValueError,
    "E0211": FuseboxTypeError,
    "E0212": FuseboxError,
    "E0213": FuseboxValueError,
    "E0214": FuseboxError,
    "E0215": FuseboxTypeError,
    "E0216": FuseboxValueError,
    # steps and schedules
    "E0301": FuseboxValueError,
    "E0302": FuseboxValueError,
    "E0303": FuseboxValueError,
    "E0310": FuseboxValueError,
    "E0311": FuseboxValueError,
    "E0312": FuseboxValueError,
    "E0313": FuseboxValueError,
    "E0314": FuseboxValueError,
    "E0315": FuseboxValueError,
    "E0316": FuseboxValueError,
    "E0317": FuseboxValueError,
    "E0318": FuseboxError,
    "E0319": FuseboxValueError,
    "E0320": FuseboxValueError,
    "E0321": FuseboxError,
    "E0322": FuseboxValueError,
    "E0326": FuseboxError,
    # execution
    "E0401": FuseboxInputError,
    "E0402": FuseboxTypeError,
    "E0403": FuseboxValueError,
    "E0404": FuseboxValueError,
    "E0405": FuseboxError,
    "E0406": FuseboxError,
    "E0407": FuseboxValueError,
    "E0408": FuseboxValueError,
    "E0409": FuseboxValueError,
    # findings of the host executor
    "E0410": FuseboxError,
    "E0411": FuseboxError,
    "E0412": FuseboxError,
    "E0413": FuseboxError,
    "E0414": FuseboxError,
    "E0415": FuseboxError,
    "E0416": FuseboxError,
    "E0417": FuseboxError,
    "E0418": FuseboxError,
    "E0419": FuseboxIndexError,
    # devices and files
    "E0420": FuseboxError,
    "E0421": FuseboxError,
    "E0422": FuseboxError,
    "E0423": FuseboxError,
    "E0430": FuseboxError,
    "E0431": FuseboxError,
    "E0432": FuseboxValueError,
    "E0433": FuseboxError,
    "E0434": FuseboxError,
    "E0440": FuseboxValueError,
    "E0441": FuseboxError,
    # faults of Fusebox
    "E0900": FuseboxError,
}
