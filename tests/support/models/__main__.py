"""`python -m tests.support.models PORT [KEY]`: runs the scripted model server as a process; prints its address."""

import sys
from collections import deque
from contextlib import suppress

from tests.support.models import listen, serving

port, *key = sys.argv[1:]
listener, models = listen(int(port))
# Nothing can read this process' recorded requests, so it keeps none.
models.seen = deque(maxlen=0)
sys.stdout.write(f"{models.url}\n")
sys.stdout.flush()
with suppress(KeyboardInterrupt):
    serving(models, next(iter(key), None)).run([listener])
