"""The settings of the scheduler: who runs what is due, how much an agent may plan, where answers may go."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


class ScheduleSettings(BaseSettings):
    """Part of `Settings`."""

    worker: bool = Field(
        True,
        alias="FRONTDESK_WORKER",
        description="Deliver due prompts from the server's own process; off where `frontdesk worker` does it alone.",
    )
    worker_concurrency: int = Field(
        128, ge=1, le=10_000, alias="FRONTDESK_WORKER_CONCURRENCY", description="Prompts at once in a process."
    )
    executor_autostart: bool = Field(
        True,
        alias="PROMPTYOSELF_EXECUTOR_AUTOSTART",
        description="The same switch as FRONTDESK_WORKER, under its older name: off in either is off.",
    )
    executor_interval: int = Field(
        60,
        ge=1,
        le=86_400,
        alias="PROMPTYOSELF_EXECUTOR_INTERVAL",
        description="Seconds between the rounds of `promptyoself_execute` in a loop; the worker itself waits for none.",
    )
    promptyoself_db: str | None = Field(
        None,
        alias="PROMPTYOSELF_DB",
        description="A PromptYoSelf database file: what `frontdesk schedule import` reads, and `health` shows.",
    )
    schedule_limit: int = Field(
        200, ge=1, le=1_000_000, alias="FRONTDESK_SCHEDULE_LIMIT", description="Schedules that an agent has at most."
    )
    schedule_shortest: int = Field(
        10,
        ge=1,
        le=86_400,
        alias="FRONTDESK_SCHEDULE_SHORTEST",
        description="Seconds between two runs of one, at least.",
    )
    schedule_longest_prompt: int = Field(
        20_000,
        ge=1,
        le=1_000_000,
        alias="FRONTDESK_SCHEDULE_LONGEST_PROMPT",
        description="Characters of a prompt at most.",
    )
    webhook_secret: SecretStr | None = Field(
        None,
        alias="FRONTDESK_WEBHOOK_SECRET",
        description="Signs answers on their way to webhooks; none go without it.",
    )
    webhook_private: bool = Field(
        False,
        alias="FRONTDESK_WEBHOOK_PRIVATE",
        description="Let webhooks lead to this machine and to private networks.",
    )

    @property
    def works(self) -> bool:
        """Whether a server delivers due prompts itself."""
        return self.worker and self.executor_autostart
