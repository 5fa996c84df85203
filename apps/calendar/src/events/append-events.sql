-- The events of what SQL functions change. They are written here because only the function that makes a change knows all of it, such as the appointment that
-- a booking joined, or the reservations that expired in the meantime.
--
-- `data` has the fields of the message in proto/scheduling/events/v1/events.proto, by their names in TypeScript; a field without a value is null. The
-- relay encodes it. It is json, because that takes Postgres less time to write than jsonb. test/change-events.test.ts compares what is written here with the messages.
--
-- `origin` says where a change comes from: actor, request_id and traceparent, and for a change with an event of its own the subject.
--
-- All of these are called by other functions only.

-- The id of the event of a change: its participation keeps it if there is a mail about the change, so that the next such event names it.
CREATE OR REPLACE FUNCTION new_mail_event(origin jsonb) RETURNS uuid LANGUAGE sql VOLATILE AS $$
  SELECT uuidv7() WHERE origin ->> 'subject' = 'scheduling.calendar.v1.participation-changed'
$$;

-- Whether there is a mail about a change that puts the booking into the calendar of its person. `new_state` is that of the participation after the change.
CREATE OR REPLACE FUNCTION invites(origin jsonb, new_state text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT origin ->> 'subject' = 'scheduling.calendar.v1.participation-changed' AND new_state = 'BOOKED'
$$;

-- The data of a ParticipationChanged. `change` is the participation after the change, without a state if it was removed; `subject` says whether there is a
-- mail, and `previous_mail_event` is then the id of the event of the previous one. `ordinal` is the number of the event among those about the appointment (its
-- event_count afterwards), and for one that was moved `source_ordinal` that among the events about its previous appointment, `source`.
CREATE OR REPLACE FUNCTION participation_changed_data(
  change participation, provider uuid, cause text, from_state text, subject text, actor text, previous_mail_event uuid, ordinal integer,
  source uuid DEFAULT NULL, source_ordinal integer DEFAULT NULL)
RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
  has_mail boolean := subject = 'scheduling.calendar.v1.participation-changed';
BEGIN
  RETURN json_build_object(
    'crmId', change.crm_id,
    'participationId', change.id,
    'version', change.version,
    'cause', 'PARTICIPATION_CHANGE_CAUSE_' || cause,
    'fromState', 'PARTICIPATION_STATE_' || from_state,
    'toState', 'PARTICIPATION_STATE_' || change.state,
    'notify', has_mail,
    'appointmentId', change.appointment_id,
    'providerId', provider,
    'customerId', change.customer_id,
    'actor', coalesce(actor, 'service'),
    'previousMailEventId', CASE WHEN has_mail THEN previous_mail_event END,
    'neverInvited', has_mail AND NOT change.invited,
    'exempt', change.exempt,
    'ordinal', ordinal,
    'previousAppointmentId', source,
    'previousOrdinal', source_ordinal);
END
$$;

-- `previous_mail_event` is the mail_event_id of the participation before the change.
CREATE OR REPLACE FUNCTION append_participation_changed(
  change participation, provider uuid, cause text, from_state text, origin jsonb, previous_mail_event uuid, ordinal integer,
  source uuid DEFAULT NULL, source_ordinal integer DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox (id, subject, data, request_id, traceparent)
  VALUES (
    CASE WHEN origin ->> 'subject' = 'scheduling.calendar.v1.participation-changed' THEN change.mail_event_id ELSE uuidv7() END,
    origin ->> 'subject',
    participation_changed_data(change, provider, cause, from_state, origin ->> 'subject', origin ->> 'actor', previous_mail_event, ordinal, source, source_ordinal),
    coalesce(origin ->> 'request_id', gen_random_uuid()::text), origin ->> 'traceparent');
END
$$;

-- A participation that no longer exists. Nobody gets a mail.
CREATE OR REPLACE FUNCTION append_participation_removed(change participation, provider uuid, origin jsonb, ordinal integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  from_state text := change.state;
BEGIN
  change.state := NULL;
  change.version := change.version + 1;
  PERFORM append_participation_changed(
    change, provider, 'REMOVED', from_state, coalesce(origin, '{}') || '{"subject": "scheduling.calendar.v1.participation-changed-silently"}', NULL, ordinal);
END
$$;

-- `place` is the appointment after it was created, or before it was cancelled or deleted. Its events are counted: one for each
-- revision, and one if it was cancelled. Its creation is the first event about it, and any other the next one after its event_count. (append-events.ts does the same for what these functions do not change.)
CREATE OR REPLACE FUNCTION append_appointment_changed(place appointment, change text, origin jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  is_new boolean := change = 'CREATED';
BEGIN
  INSERT INTO outbox (subject, data, request_id, traceparent)
  VALUES (
    'scheduling.calendar.v1.appointment-changed',
    json_build_object(
      'crmId', place.crm_id,
      'appointmentId', place.id,
      'providerId', place.provider_id,
      'change', 'APPOINTMENT_CHANGE_' || change,
      'fromState', CASE WHEN NOT is_new THEN 'APPOINTMENT_STATE_' || place.state END,
      'version', place.revision + CASE WHEN is_new THEN 0 WHEN place.state = 'ACTIVE' THEN 1 ELSE 2 END,
      'actor', coalesce(origin ->> 'actor', 'service'),
      'ordinal', CASE WHEN is_new THEN 1 ELSE place.event_count + 1 END,
      'capacity', place.capacity::integer),
    coalesce(origin ->> 'request_id', gen_random_uuid()::text), origin ->> 'traceparent');
END
$$;
