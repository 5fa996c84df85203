"""From an empty calendar to an erased customer: KEY=sk_… WEBHOOK_URL=https://crm.example/hooks python afternoon.py"""

import os
import threading
import time
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

from scheduling_client import Client, ProblemError, WebhookVerificationError, types, verify_webhook

port = int(os.environ.get("PORT", "3000"))
scheduling = Client(
    url=os.environ.get("SCHEDULING_URL", "http://127.0.0.1:8080"),
    crm_id=os.environ.get("CRM", "demo"),
    key=os.environ["KEY"],
)
run = int(time.time() * 1000)
print("Connected as", scheduling.get_crm()["crm"]["crmId"], flush=True)


def reference(name: str) -> str:
    """The IDs of your own database."""
    return f"{name}-{run}@crm"


# Set up: who runs the studio, the business, and its calendar.
owner, studio, provider = reference("mara"), reference("studio"), reference("yoga")
scheduling.create_user(
    {
        "reference": owner,
        "email": f"{owner}.example",
        "username": owner.replace("@", "."),
        "lastName": "Blum",
    }
)
scheduling.create_account({"ownerReference": owner, "accountReference": studio, "branch": "sports-and-leisure"})
scheduling.create_provider(
    {
        "reference": provider,
        "ownerReference": owner,
        "accountReference": studio,
        "name": "Studio Blum",
    }
)

# Receive the events of this calendar.
url = os.environ.get("WEBHOOK_URL", f"http://127.0.0.1:{port}")
webhook = scheduling.create_webhook({"reference": reference("webhook"), "url": url, "providerReference": provider})[
    "webhook"
]
cancelled = threading.Event()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        try:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            event = verify_webhook(webhook.get("secret") or "", body, self.headers)
        except WebhookVerificationError:
            self.send_response(401)
        else:
            print(event["type"], event["data"]["reference"], flush=True)
            if event["type"] == "participation.changed" and event["data"].get("state") == "CANCELED":
                cancelled.set()
            self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


server = HTTPServer(("", port), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()

# Say when the room is open, and list what can be booked from next week on.
window: types.NewHoursWindow = {
    "weekdays": ["1", "2", "3", "4", "5"],
    "from": "10:00",
    "to": "13:00",
    "raster": 60,
    "defaultCapacity": 1,
    "defaultAcceptBookings": True,
}
scheduling.put_hours(provider, "room-1", {"weekly": [window]})
next_week = date.today() + timedelta(weeks=1)
first, second = scheduling.list_slots(provider, {"from": f"{next_week}T00:00", "limit": 2})

# Book, move and cancel.
booking: types.TimeslotBooking = {
    "reference": reference("booking"),
    "timeslotReference": first["timeslotReference"] or "",
    "start": first["start"],
    "productReference": "flow",
    "productName": "Vinyasa Flow",
    "customer": {
        "customerReference": reference("tom"),
        "userName": "Tom Berg",
        "email": "tom@example.com",
        "language": "en",
    },
    "state": "BOOKED",
}
scheduling.create_booking(provider, booking)
try:
    scheduling.create_booking(provider, {**booking, "reference": reference("second")})
except ProblemError as error:
    if error.code != "slot.unavailable":
        raise
    print("The slot is taken.", flush=True)
later: types.BookingChange = {"timeslotReference": second["timeslotReference"], "start": second["start"]}
scheduling.change_booking(provider, booking["reference"], later)
scheduling.update_participation(provider, booking["reference"], {"state": "CANCELED"})

# When the webhook has told it, erase the customer, and clean up.
cancelled.wait()
scheduling.delete_customer(provider, reference("tom"))
if scheduling.get_customer(provider, reference("tom")) is None:
    print("The customer is gone.", flush=True)
scheduling.delete_webhook(reference("webhook"))
server.shutdown()
server.server_close()
scheduling.close()
