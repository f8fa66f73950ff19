"""How an operation that does not raise tells how it went."""

import pytest

from frontdesk.agent365 import InvalidArgument, OperationError, OperationResult
from tests.requirements import shows


def failed(*messages: str) -> OperationResult:
    return OperationResult.failed(*(OperationError(ValueError(message)) for message in messages))


@shows("A365-CHAT")
def test_every_success_is_the_same_one() -> None:
    assert OperationResult.success() is OperationResult.success()
    assert OperationResult.success().succeeded is True
    assert OperationResult.success().errors == []


def test_who_changes_the_errors_changes_nothing() -> None:
    error = OperationError(ValueError("a"))
    given = [error]
    results = [OperationResult.success(), OperationResult.failed(error), OperationResult(False, given)]
    before = [result.errors for result in results]
    for result in results:
        result.errors.append(OperationError(ValueError("b")))
    given.clear()
    assert [result.errors for result in results] == before == [[], [error], [error]]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (OperationResult.success(), "Succeeded"),
        (OperationResult(True, [OperationError(ValueError("a"))]), "Succeeded"),
        (failed(), "Failed"),
        (OperationResult(False), "Failed"),
        (failed("one"), "Failed: one"),
        (failed("one", "two"), "Failed: one, two"),
        (failed(""), "Failed"),
    ],
)
def test_it_says_in_words_how_it_went(result: OperationResult, text: str) -> None:
    assert str(result) == text


def test_a_failure_has_not_succeeded_and_is_its_own() -> None:
    assert failed().succeeded is False
    assert failed() is not failed()


def test_an_error_is_the_exception_that_says_it() -> None:
    cause = RuntimeError("what happened")
    error = OperationError(cause)
    assert error.exception is cause
    assert error.message == str(error) == "what happened"


def test_an_error_without_an_exception_is_none() -> None:
    with pytest.raises(InvalidArgument, match="exception cannot be None"):
        OperationError(None)


def test_what_is_told_is_not_changed_afterwards() -> None:
    for thing, name in ((OperationResult.success(), "succeeded"), (OperationError(ValueError()), "exception")):
        with pytest.raises(AttributeError):
            setattr(thing, name, None)
