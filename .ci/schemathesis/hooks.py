"""What Schemathesis has to know of the service that the API document cannot say.

The environment has references of objects that exist: KEPT_<KIND> of those that all operations use, and DOOMED_<KIND> of
those that can be deleted.
"""

import atexit
import datetime
import itertools
import json
import os
import re
import uuid
from collections import Counter
from urllib.parse import unquote

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import TestPhase
from schemathesis.openapi.checks import AllowHeaderMismatch, RejectedPositiveData

# Formats that are not in the registry, and dates of the years that the service knows.

near = st.datetimes(datetime.datetime(2030, 5, 1), datetime.datetime(2031, 5, 1))
moments = near | near | st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(9998, 12, 31))
notations = st.sampled_from(["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f"])
local = st.builds(lambda moment, notation: moment.strftime(notation), moments, notations)
instants = st.builds("{}{}".format, local, st.sampled_from(["Z", "+00:00", "+02:00", "-0330", "+14:59"]))

schemathesis.openapi.format("date-time-optional-offset", local | instants)
schemathesis.openapi.format("instant", instants)
schemathesis.openapi.format("date", moments.map(lambda moment: moment.strftime("%Y-%m-%d")))
schemathesis.openapi.format("language-tag", st.sampled_from(["de", "en", "de-AT", "zh-Hant-TW", "sl-rozaj-biske"]))

# References of objects that exist.


def references(prefix):
    return {name.removeprefix(prefix): value for name, value in os.environ.items() if name.startswith(prefix)}


KEPT = references("KEPT_")
DOOMED = references("DOOMED_")
KINDS = {
    "providerRef": "PROVIDER",
    "userRef": "STAFF",
    "resourceRef": "RESOURCE",
    "appointmentRef": "APPOINTMENT",
    "participationRef": "PARTICIPATION",
    "timeslotRef": "TIMESLOT",
    "blockRef": "BLOCK",
    "mailId": "MAIL",
    "customerRef": "CUSTOMER",
    "calendarRef": "CALENDAR",
    "webhookRef": "WEBHOOK",
    "erasureId": "ERASURE",
    "invitationId": "INVITATION",
}


def kind_of(path, name):
    """`reference` is of a user, an account or a provider, as the path says."""
    if name == "participationRef" and path.endswith("/bookings/{participationRef}"):
        return "BOOKING"
    return path.split("/")[3].upper() if name == "reference" else KINDS.get(name)


def operation_id(case):
    return case.operation.definition.raw["operationId"]


def last_parameter(operation):
    """What a DELETE deletes, and a PUT changes."""
    return operation.path.rsplit("/", 1)[-1].strip("{}")


@schemathesis.hook
def map_case(context, case):
    if case.meta.phase.name in (TestPhase.EXAMPLES, TestPhase.COVERAGE):
        name_existing_objects(case)
    if not case.meta.is_negative_at(ParameterLocation.HEADER):
        make_key_unique(case.headers)
    if not case.meta.is_negative_at(ParameterLocation.QUERY):
        put_periods_in_order(case.query)
    if not case.meta.is_negative_at(ParameterLocation.BODY):
        put_periods_in_order(case.body)
        if (
            isinstance(case.body, dict)
            and case.body.get("timeslotReference") == KEPT["BOOKABLE"]
            and "start" in case.body
        ):
            case.body["start"] = KEPT["START"]
    return case


# Of objects in a body. What an operation creates has a reference of its own.
FIELDS = {
    "ownerReference": "USER",
    "accountReference": "ACCOUNT",
    "providerReference": "PROVIDER",
    "customerReference": "CUSTOMER",
    "appointmentReference": "APPOINTMENT",
    "timeslotReference": "BOOKABLE",
    "resourceReference": "RESOURCE",
    "productReference": "PRODUCT",
}
CREATED = {"createAccount": "accountReference", "createCustomer": "customerReference"}


def name_existing_objects(case):
    """The values of these phases do not come from the dictionaries of the configuration."""
    if not case.meta.is_negative_at(ParameterLocation.PATH):
        known = DOOMED if case.method == "DELETE" else KEPT
        for name in case.path_parameters or {}:
            kind = kind_of(case.operation.path, name)
            if kind in known:
                case.path_parameters[name] = known[kind]
        # A provider that is deleted itself must not take along what is deleted in another one.
        if case.method == "DELETE" and last_parameter(case.operation) == "reference":
            case.path_parameters["reference"] = DOOMED["WHOLE_" + kind_of(case.operation.path, "reference")]
    if case.method == "POST" and isinstance(case.body, dict) and not case.meta.is_negative_at(ParameterLocation.BODY):
        for field, kind in FIELDS.items():
            if field in case.body and CREATED.get(operation_id(case)) != field:
                case.body[field] = KEPT[kind]
    # They are different for each list: only what the service has given is valid.
    if not case.meta.is_negative_at(ParameterLocation.QUERY):
        for name in ("cursor", "after"):
            if case.query and case.meta.phase.data.parameter != name:
                case.query.pop(name, None)


request_numbers = itertools.count()


def make_key_unique(headers):
    """Few keys are drawn again and again, and the second request with one is refused. One in ten is left as it is."""
    if headers and "idempotency-key" in headers:
        number = next(request_numbers)
        if number % 10 > 0:
            headers["idempotency-key"] = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{KEPT['PROVIDER']} {number}"))


def put_periods_in_order(value):
    """Two drawn times are in the wrong order half the time."""
    if isinstance(value, list):
        for each in value:
            put_periods_in_order(each)
    elif isinstance(value, dict):
        for start, end in (("start", "end"), ("from", "to"), ("validFrom", "validUntil")):
            if isinstance(value.get(start), str) and isinstance(value.get(end), str) and value[end] <= value[start]:
                value[start], value[end] = value[end], later(value[start])
        for each in value.values():
            put_periods_in_order(each)


def later(time):
    """Date-times and times of day that were drawn twice; those from 09:00 on are left as they are."""
    return re.sub(r"(^|T)0\d:", r"\g<1>09:", time)


@schemathesis.hook
def filter_case(context, case):
    """What all operations use is not deleted and keeps its reference."""
    kept = KEPT.values()
    if case.method == "DELETE":
        containers = [case.path_parameters or {}, case.query or {}, case.body if isinstance(case.body, dict) else {}]
        named = {name: value for container in containers for name, value in container.items() if name != "providerRef"}
        return not any(value in kept for value in named.values() if isinstance(value, str))
    if case.method == "PUT" and isinstance(case.body, dict):
        return not any(name in case.body for name in ("reference", "customerReference", "accountReference"))
    return True


# Reported failures to ignore.

# What a schema cannot say, by the detail with which the service rejects it. Valid data that is rejected for anything else
# is a failure: either the service rejects too much, or the document allows too much.
RULES = [
    # Fields that depend on each other, on the path, or on what is stored.
    r"must be after (start|from)",
    r"must not be before (from|validFrom)",
    r"must differ from from; .+",
    r"must be at most \d+ (days|months|years) after from",
    r"must fit between (start and end|from and to)",
    r"must match the provider in the path",
    r"has different values in the body and the query",
    r"can(not be given| be given only) together with \w+",
    r"only one of .+ can be given",
    r"(exactly )?one of .+ is required",
    r"is required( with| without| unless| when|, because) .+",
    r"no slot of the raster fits into the daily window on a listed weekday",
    r"occurs more than once",
    r"must be the product of an offer in the booking rules",
    r"cannot be (RESERVED|REQUESTED) in an update",
    # The clock.
    r"must be at most 10 years from the real time",
    r"must be in the future, and at most 366 days ahead",
    # Values that only the service makes.
    r"is not a valid (cursor|continuation)",
    r"is not an event of this CRM",
    # Lists that others keep, or that grow.
    r"must be the IANA name of a time zone",
    r".* ?is not an event type: one of .+",
    # What only the service that has the field checks.
    r"must be a colour in the format #rrggbb",
    r"must be darker: .+",
    r"has more than \d+ appointments, or more than \d+ days",
    r"must be plain text of at most .+",
    # URLs, of which each place allows others.
    r"must be an http or https URL",
    r"must have a host",
    r"must not contain (a user name or a password|a fragment)",
    r"must be an origin such as .+",
]
# The arguments of a DELETE are in the body or in the query, so neither can require them.
RULES_OF_DELETE = [*RULES, r"is required"]


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if isinstance(failure, RejectedPositiveData):
        return not has_forbidden_text(case) and not follows_rules(case, response)
    if isinstance(failure, AcceptedNegativeData):
        # Schemathesis does not know that invalid data can be too large, too.
        is_accepted = response.status_code != 413
        return is_accepted and not is_valid(case) and not is_empty(case) and not is_created_again(case, response)
    if isinstance(failure, AllowHeaderMismatch):
        # An appointment can have the reference "withoutNotification": the methods of its address are allowed, too.
        return not case.operation.path.endswith("/appointments/withoutNotification")
    return True


def has_forbidden_text(case):
    """What the patterns of the document let pass (format-patterns.ts); and U+FEFF, which is white space, but not in Python."""
    path = [unquote(str(value)) for value in (case.path_parameters or {}).values()]
    texts = [*path, *texts_in([case.query, case.body])]
    # Schemathesis takes a path with any control character for valid once it is percent-encoded.
    return any(re.search(r"[\x00-\x1f\x7f]", value) for value in path) or any(
        re.search(r"[\x80-\x9f\u2028\u2029]|^[\s\ufeff]+$|^\.\.?$", value) for value in texts
    )


def texts_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from texts_in(list(value.values()))
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each)


def is_valid(case):
    """Schemathesis takes a path for too long once it is percent-encoded, although it made no mutation."""
    return (case.meta.phase.data.description or "").lower() == "positive test case"


def is_created_again(case, response):
    """Creating it again returns what exists, whatever the branch in the request (interface 4.6, 4.7)."""
    return operation_id(case) in ("createAccount", "createProvider") and response.status_code == 200


def is_empty(case):
    """An empty string in an optional field is the same as null, and its format is not looked at."""
    data = case.meta.phase.data
    keywords = [keyword for mutation in getattr(data, "mutations", ()) for keyword in mutation.keywords]
    return ("format" in keywords or "format" in (data.description or "")) and "" in texts_in(case.body)


def follows_rules(case, response):
    problem = json.loads(response.content)
    # A key that was drawn twice, an event that is too old, and a long list of long texts.
    if problem["code"] in ("idempotency_key.reused", "events.expired", "request.too_large"):
        return True
    # Names of properties that no body can have (interface 1, Bodies).
    if problem["code"] == "request.malformed" and re.search(
        rb'"(__proto__|constructor)"', response.request.body or b""
    ):
        return True
    rules = re.compile("|".join(RULES_OF_DELETE if case.method == "DELETE" else RULES))
    errors = problem.get("errors", [])
    return errors != [] and all(rules.fullmatch(error["detail"]) for error in errors)


# How often which operation was answered with which status.

answers = {}


@schemathesis.hook
def after_call(context, case, response):
    answers.setdefault(operation_id(case), Counter())[response.status_code] += 1


@atexit.register
def write_answers():
    with open(os.environ["ANSWERS"], "w") as file:
        json.dump(answers, file)
