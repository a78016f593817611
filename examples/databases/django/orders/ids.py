import firn
from django.conf import settings

# One client for all threads. It connects at its first call, and anew in a process that gunicorn or uWSGI has forked.
ids = firn.Client(settings.FIRN_NODES)
layout = firn.Layout.parse("default")


def next_id():
    """Return a new ID. Migrations name this function, and do not call it: a lambda has no name, and is refused."""
    return ids.next()
