"""The one error of the package."""


class FuseboxError(Exception):
    """A coded error: `code` such as "E0203", `place` the value, step or field with the error (or ""), `message` a sentence."""

    def __init__(self, code: str, message: str, place: str = "") -> None:
        super().__init__(code, message, place)
        self.code = code
        self.message = message
        self.place = place

    def __str__(self) -> str:
        return f"{self.code} {self.message}" + (f" (at {self.place})" if self.place else "")
