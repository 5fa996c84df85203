-- The events about appointments and participations, written by the functions that change them: only these know all of a change, such as the appointment that a booking
-- joined, or the reservations that expired in the meantime.
--
-- `data` has the fields of the message in proto/scheduling/events/v1/events.proto, by their names in TypeScript; a field without a value is null. The
-- relay encodes it. It is json, because that takes Postgres less time to write than jsonb. test/change-events.test.ts compares what is written here with the messages.
--
-- `origin` says where a change comes from: actor, request_id and traceparent, hasMail if the participant gets a mail about it, and decided
-- if the provider has decided a request by a link, and changeId if the participation is changed with its appointment.
--
-- All of these are called by other functions only.

CREATE OR REPLACE FUNCTION has_mail(origin jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce((origin ->> 'hasMail')::boolean, false)
$$;

-- The id of the event of a change: its participation keeps it if there is a mail about the change, so that the next such event names it.
CREATE OR REPLACE FUNCTION new_mail_event(origin jsonb) RETURNS uuid LANGUAGE sql VOLATILE AS $$
  SELECT uuidv7() WHERE has_mail(origin)
$$;

-- Whether there is a mail about a change that puts the booking into the calendar of its person. `new_state` is that of the participation after the change.
CREATE OR REPLACE FUNCTION invites(origin jsonb, new_state text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT has_mail(origin) AND new_state = 'BOOKED'
$$;

CREATE OR REPLACE FUNCTION participation_subject(has_mail boolean) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN has_mail THEN 'scheduling.calendar.v1.participation-changed' ELSE 'scheduling.calendar.v1.participation-changed-silently' END
$$;

-- The data of a ParticipationChanged. `change` is the participation after the change, without a state if it was removed; if there is a mail,
-- `previous_mail_event` is the id of the event of the previous one. `ordinal` is the number of the event among those about the appointment (its
-- event_count afterwards), and for one that was moved `source_ordinal` that among the events about its previous appointment, `source`.
CREATE OR REPLACE FUNCTION participation_changed_data(
  change participation, provider uuid, cause text, from_state text, origin jsonb, previous_mail_event uuid, ordinal integer,
  source uuid DEFAULT NULL, source_ordinal integer DEFAULT NULL)
RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN json_build_object(
    'crmId', change.crm_id,
    'participationId', change.id,
    'version', change.version,
    'cause', 'PARTICIPATION_CHANGE_CAUSE_' || cause,
    'fromState', 'PARTICIPATION_STATE_' || from_state,
    'toState', 'PARTICIPATION_STATE_' || change.state,
    'notify', has_mail(origin),
    'appointmentId', change.appointment_id,
    'providerId', provider,
    'customerId', change.customer_id,
    'actor', coalesce(origin ->> 'actor', 'service'),
    'previousMailEventId', CASE WHEN has_mail(origin) THEN previous_mail_event END,
    'neverInvited', has_mail(origin) AND NOT change.invited,
    'exempt', change.exempt,
    'ordinal', ordinal,
    'previousAppointmentId', source,
    'previousOrdinal', source_ordinal,
    'notifyProvider', has_mail(origin) AND coalesce(
      (SELECT rules.notify_provider FROM booking_rules AS rules WHERE rules.crm_id = change.crm_id AND rules.provider_id = provider), false),
    'decided', coalesce((origin ->> 'decided')::boolean, false),
    'changeId', origin ->> 'changeId');
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
    CASE WHEN has_mail(origin) THEN change.mail_event_id ELSE uuidv7() END,
    participation_subject(has_mail(origin)),
    participation_changed_data(change, provider, cause, from_state, origin, previous_mail_event, ordinal, source, source_ordinal),
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
    change, provider, 'REMOVED', from_state, coalesce(origin, '{}') || '{"hasMail": false}', NULL, ordinal);
END
$$;

-- `changed` is the appointment after it was created, or before it was updated (with the new capacity), cancelled or deleted. Its events are counted: one for each
-- revision, and one if it was cancelled. Its creation is the first event about it, and any other the next one after its event_count.
CREATE OR REPLACE FUNCTION append_appointment_changed(changed appointment, change text, origin jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  is_new boolean := change = 'CREATED';
BEGIN
  INSERT INTO outbox (subject, data, request_id, traceparent)
  VALUES (
    'scheduling.calendar.v1.appointment-changed',
    json_build_object(
      'crmId', changed.crm_id,
      'appointmentId', changed.id,
      'providerId', changed.provider_id,
      'change', 'APPOINTMENT_CHANGE_' || change,
      'fromState', CASE WHEN NOT is_new THEN 'APPOINTMENT_STATE_' || changed.state END,
      'version', changed.revision + CASE WHEN is_new THEN 0 WHEN changed.state = 'ACTIVE' THEN 1 ELSE 2 END,
      'actor', coalesce(origin ->> 'actor', 'service'),
      'ordinal', CASE WHEN is_new THEN 1 ELSE changed.event_count + 1 END,
      'capacity', changed.capacity::integer),
    coalesce(origin ->> 'request_id', gen_random_uuid()::text), origin ->> 'traceparent');
END
$$;
