from django.db import models

from orders.ids import next_id


class Order(models.Model):
    id = models.BigIntegerField(primary_key=True, default=next_id, editable=False)
    item = models.TextField()

    class Meta:
        db_table = "orders"

    def for_browser(self):
        return {"id": str(self.id), "item": self.item}  # a string: a browser's numbers would lose digits
