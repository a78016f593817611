from django.http import JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import path

from orders.models import Order


def order(request, id):
    return JsonResponse(get_object_or_404(Order, pk=id).for_browser())


urlpatterns = [path("orders/<int:id>", order)]
