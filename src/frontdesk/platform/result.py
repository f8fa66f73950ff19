"""How an operation that does not raise tells how it went; the SDK's two classes, by their names."""

from collections.abc import Sequence

from typing_extensions import override

from frontdesk.platform.errors import InvalidArgument


class OperationError:
    """What went wrong, as the exception that says it."""

    __slots__ = ("_exception",)

    def __init__(self, exception: Exception | None) -> None:
        if exception is None:
            raise InvalidArgument("exception cannot be None")
        self._exception = exception

    @property
    def exception(self) -> Exception:
        return self._exception

    @property
    def message(self) -> str:
        return str(self._exception)

    @override
    def __str__(self) -> str:
        return str(self._exception)


class OperationResult:
    """Whether an operation succeeded, and if not, why."""

    __slots__ = ("_errors", "_succeeded")

    def __init__(self, succeeded: bool, errors: Sequence[OperationError] | None = None) -> None:
        self._succeeded = succeeded
        self._errors = tuple(errors or ())

    @property
    def succeeded(self) -> bool:
        return self._succeeded

    @property
    def errors(self) -> list[OperationError]:
        """A list of its own each time: whoever changes it changes nothing here."""
        return list(self._errors)

    @staticmethod
    def success() -> "OperationResult":
        """The one that every success shares."""
        return _SUCCESS

    @staticmethod
    def failed(*errors: OperationError) -> "OperationResult":
        return OperationResult(False, errors)

    @override
    def __str__(self) -> str:
        if self._succeeded:
            return "Succeeded"
        told = ", ".join(error.message for error in self._errors)
        return f"Failed: {told}" if told else "Failed"


_SUCCESS = OperationResult(True)
