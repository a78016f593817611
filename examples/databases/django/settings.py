import os

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["PGHOST"],
        "PORT": os.environ.get("PGPORT", ""),
        "USER": os.environ["PGUSER"],
        "NAME": os.environ["PGDATABASE"],
    }
}
FIRN_NODES = [os.environ["FIRN_URL"]]
INSTALLED_APPS = ["orders"]
ROOT_URLCONF = "orders.urls"
ALLOWED_HOSTS = ["localhost"]
USE_TZ = True
