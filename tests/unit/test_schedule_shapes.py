"""Runs as every interface tells them."""

from frontdesk.interfaces.schedule_responses import RunResponse
from frontdesk.schedules.model import RunRecord, RunStatus, WebhookStatus


def test_a_run_says_that_its_answer_was_not_taken_and_why() -> None:
    past = RunRecord("run-1-1", 1, "ada", None, 1_000, 1, RunStatus.DELIVERED, 1, 2_000, 3_000, answer="Done")
    assert RunResponse.of(past).model_dump()["webhook"] is None
    given_up = RunRecord(
        *("run-1-1", 1, "ada", None, 1_000, 1, RunStatus.DELIVERED, 1, 2_000, 3_000),
        forwarded=WebhookStatus("dead", 12, "example.com answered 500"),
    )
    told = {"state": "dead", "attempt": 12, "error": "example.com answered 500"}
    assert RunResponse.of(given_up).model_dump()["webhook"] == told
