"""IDs of firn as primary keys in PostgreSQL, with Django. Before it: manage.py makemigrations orders, manage.py migrate."""

import os
import time
from datetime import datetime, timezone

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

from django.test import Client  # noqa: E402

from orders.ids import ids, layout  # noqa: E402
from orders.models import Order  # noqa: E402


def show(what, orders):
    print(what + ":", *[order.item for order in orders])


for item in ["tea", "milk", "sugar"]:
    Order.objects.create(item=item)  # Django asks for the ID
time.sleep(0.05)
since = datetime.now(timezone.utc)
time.sleep(0.05)
items = ["bread", "butter", "jam"]
new = [Order(id=id, item=item) for id, item in zip(ids.take(len(items)), items)]  # one request for all
Order.objects.bulk_create(new)

# The orders of a time are a range of the primary key.
recent = Order.objects.filter(id__range=(layout.first(since), layout.last(datetime.now(timezone.utc)))).order_by("id")
show("since", recent)

# The next page begins after the last order of this one.
after = 0
while page := Order.objects.filter(id__gt=after).order_by("id")[:2]:
    show("page", page)
    after = page[1].id

# Out to a browser, and back.
answer = Client(SERVER_NAME="localhost").get(f"/orders/{recent[0].id}")
print("json:", answer.content.decode())
show("back", [Order.objects.get(id=answer.json()["id"])])
