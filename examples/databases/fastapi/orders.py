"""IDs of firn as primary keys in PostgreSQL, with FastAPI and SQLAlchemy. A server runs it as orders:app."""

import os
import time
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from typing import List

import firn
from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel
from sqlalchemy import BigInteger, Column, Text, create_engine, select
from sqlalchemy.orm import Session, declarative_base

layout = firn.Layout.parse("default")
engine = create_engine("postgresql+psycopg2://")  # where PGHOST, PGUSER and PGDATABASE say


class Order(declarative_base()):
    __tablename__ = "orders"

    id = Column(BigInteger, primary_key=True, autoincrement=False)
    item = Column(Text, nullable=False)


class NewOrder(BaseModel):
    item: str


class OrderOut(BaseModel):
    id: str  # a browser's numbers would lose digits
    item: str


def out(order):
    return OrderOut(id=str(order.id), item=order.item)


@asynccontextmanager
async def lifespan(app):
    """Have one client while the server runs: it belongs to the event loop of the process."""
    Order.metadata.create_all(engine)
    async with firn.AsyncClient([os.environ["FIRN_URL"]]) as ids:
        app.state.ids = ids
        yield


app = FastAPI()
app.router.lifespan_context = lifespan  # FastAPI(lifespan=lifespan) does the same from FastAPI 0.93 on


async def new_id(request: Request) -> int:
    return await request.app.state.ids.next()


def session():
    with Session(engine) as session:
        yield session


@app.post("/orders", status_code=201, response_model=OrderOut)
def create(new: NewOrder, id: int = Depends(new_id), db: Session = Depends(session)):
    order = Order(id=id, item=new.item)
    db.add(order)
    db.commit()
    return out(order)


@app.get("/orders", response_model=List[OrderOut])
def search(since: datetime, until: datetime, db: Session = Depends(session)):
    """List the orders of a time, which are a range of the primary key."""
    try:
        between = Order.id.between(layout.first(since), layout.last(until))
    except ValueError as e:  # a time without a time zone, or beyond the layout
        raise HTTPException(422, str(e))
    return [out(order) for order in db.scalars(select(Order).where(between).order_by(Order.id))]


@app.get("/orders/after/{id}", response_model=List[OrderOut])
def page(id: int, db: Session = Depends(session)):
    """List the next page, which begins after the last order of the page before."""
    return [out(order) for order in db.scalars(select(Order).where(Order.id > id).order_by(Order.id).limit(2))]


@app.get("/orders/{id}", response_model=OrderOut)
def read(id: int, db: Session = Depends(session)):
    order = db.get(Order, id)
    if not order:
        raise HTTPException(404, f"there is no order {id}")
    return out(order)


def show(what, orders):
    print(what + ":", *[order["item"] for order in orders])


if __name__ == "__main__":
    from fastapi.testclient import TestClient

    with TestClient(app) as browser:

        def insert(*items):
            for item in items:
                browser.post("/orders", json={"item": item}).raise_for_status()

        insert("tea", "milk", "sugar")
        time.sleep(0.05)
        since = datetime.now(timezone.utc)
        time.sleep(0.05)
        insert("bread", "butter", "jam")

        times = {"since": since.isoformat(), "until": datetime.now(timezone.utc).isoformat()}
        recent = browser.get("/orders", params=times).json()
        show("since", recent)

        after = "0"
        while orders := browser.get(f"/orders/after/{after}").json():
            show("page", orders)
            after = orders[-1]["id"]

        answer = browser.get("/orders/" + recent[0]["id"])
        print("json:", answer.text)
        show("back", [browser.get("/orders/" + answer.json()["id"]).json()])
