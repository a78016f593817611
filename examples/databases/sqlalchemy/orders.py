"""IDs of firn as primary keys in PostgreSQL, with SQLAlchemy.

The functions firn_first and firn_last are those of firn gen sql --dialect postgres.
"""

import json
import os
import time
from datetime import datetime, timezone

import firn
from sqlalchemy import BigInteger, Column, Text, create_engine, func, select
from sqlalchemy.orm import Session, declarative_base

ids = firn.Client([os.environ["FIRN_URL"]])  # one for the process: any thread may use it


class Order(declarative_base()):
    __tablename__ = "orders"

    id = Column(BigInteger, primary_key=True, autoincrement=False, default=lambda: ids.next())
    item = Column(Text, nullable=False)


def show(what, orders):
    print(what + ":", *[order.item for order in orders])


engine = create_engine("postgresql+psycopg2://")  # where PGHOST, PGUSER and PGDATABASE say
Order.metadata.create_all(engine)
with Session(engine) as session:

    def insert(*items):
        for item in items:
            session.add(Order(item=item))
            session.flush()
        session.commit()

    insert("tea", "milk", "sugar")
    time.sleep(0.05)
    since = datetime.now(timezone.utc)
    time.sleep(0.05)
    insert("bread", "butter", "jam")

    # The orders of a time are a range of the primary key.
    between = Order.id.between(func.firn_first(since), func.firn_last(datetime.now(timezone.utc)))
    recent = session.scalars(select(Order).where(between).order_by(Order.id)).all()
    show("since", recent)

    # The next page begins after the last order of this one.
    after = 0
    while page := session.scalars(select(Order).where(Order.id > after).order_by(Order.id).limit(2)).all():
        show("page", page)
        after = page[-1].id

    # Out to a browser, and back. The ID goes as a string: a browser's numbers would lose digits.
    out = json.dumps({"id": str(recent[0].id), "item": recent[0].item}, separators=(",", ":"))
    print("json:", out)
    show("back", [session.get(Order, int(json.loads(out)["id"]))])
