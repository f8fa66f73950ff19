"""The tools of the memory room, whoever offers them: what each takes, does and answers, without any protocol."""
