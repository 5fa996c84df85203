-- The events of what SQL functions change, encoded as the messages in proto/scheduling/events/v1/events.proto. They are written here because only the
-- function that makes a change knows all of it, such as the appointment that a booking joined, or the reservations that expired in the meantime.
--
-- A message is a sequence of fields: the tag, which is 8 * number + 2 for a text and 8 * number for a number, then the length and the text, or the number.
-- These are single bytes, and the texts are ids, so the message is put together as a text and converted once: that is ten times faster than to
-- concatenate bytes. `$` is 36, the length of a uuid. A field without a value is left out.
--
-- `origin` says where a change comes from: actor, request_id and traceparent, and for a change with an event of its own the subject. In a request of the
-- previous version it is called `event` and has no actor, or is missing where that version caused no event.
--
-- All of these are called by other functions only.

-- A number from 1 to 2^28 - 1, seven bits in a byte, the lowest first.
CREATE OR REPLACE FUNCTION proto_varint(value integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN value < 128 THEN chr(value) ELSE chr(value & 127 | 128) || CASE
    WHEN value >> 7 < 128 THEN chr(value >> 7) ELSE chr(value >> 7 & 127 | 128) || CASE
    WHEN value >> 14 < 128 THEN chr(value >> 14) ELSE chr(value >> 14 & 127 | 128) || chr(value >> 21) END END END
$$;

DROP FUNCTION IF EXISTS participation_changed(participation, uuid, text, text, text, text);
DROP FUNCTION IF EXISTS participation_changed(participation, uuid, text, text, text, text, uuid);
DROP FUNCTION IF EXISTS append_participation_changed(participation, uuid, text, text, jsonb);
DROP FUNCTION IF EXISTS append_participation_changed(participation, uuid, text, text, jsonb, uuid);
DROP FUNCTION IF EXISTS append_participation_removed(participation, uuid, jsonb);

-- The id of the event of a change: its participation keeps it if there is a mail about the change, so that the next such event names it.
CREATE OR REPLACE FUNCTION new_mail_event(origin jsonb) RETURNS uuid LANGUAGE sql VOLATILE AS $$
  SELECT uuidv7() WHERE origin ->> 'subject' = 'scheduling.calendar.v1.participation-changed'
$$;

-- Whether there is a mail about a change that puts the booking into the calendar of its person. `new_state` is that of the participation after the change.
CREATE OR REPLACE FUNCTION invites(origin jsonb, new_state text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT origin ->> 'subject' = 'scheduling.calendar.v1.participation-changed' AND new_state = 'BOOKED'
$$;

-- A ParticipationChanged. `change` is the participation after the change, without a state if it was removed; `subject` says whether there is a mail, and
-- `previous_mail_event` is then the id of the event of the previous one. `ordinal` is the number of the event among those about the appointment (its event_count
-- afterwards), and for one that was moved `source_ordinal` that among the events about its previous appointment, `source`.
CREATE OR REPLACE FUNCTION participation_changed(
  change participation, provider uuid, cause text, from_state text, subject text, actor text, previous_mail_event uuid, ordinal integer,
  source uuid DEFAULT NULL, source_ordinal integer DEFAULT NULL)
RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  states CONSTANT text[] := '{RESERVED,REQUESTED,BOOKED,CANCELED,DELETED}';
  who text := coalesce(actor, 'service');
  has_mail boolean := subject = 'scheduling.calendar.v1.participation-changed';
BEGIN
  RETURN convert_to(concat(
    chr(10), chr(length(change.crm_id)), change.crm_id,
    chr(18), '$', change.id,
    chr(24), CASE WHEN change.version < 128 THEN chr(change.version) ELSE proto_varint(change.version) END,
    chr(32), chr(CASE cause WHEN 'CREATED' THEN 1 WHEN 'UPDATED' THEN 2 WHEN 'MOVED' THEN 4 WHEN 'REMOVED' THEN 6 END),
    chr(40) || chr(array_position(states, from_state)),
    chr(48) || chr(array_position(states, change.state)),
    CASE WHEN has_mail THEN chr(56) || chr(1) END,
    chr(66), '$', change.appointment_id,
    chr(74), '$', provider,
    chr(82) || '$' || change.customer_id,
    chr(90), chr(length(who)), who,
    CASE WHEN has_mail THEN chr(98) || '$' || previous_mail_event END,
    CASE WHEN has_mail AND NOT change.invited THEN chr(104) || chr(1) END,
    CASE WHEN change.exempt THEN chr(112) || chr(1) END,
    chr(120), proto_varint(ordinal),
    -- The tags have two bytes.
    chr(130) || chr(1) || '$' || source,
    chr(136) || chr(1) || proto_varint(source_ordinal)), 'LATIN1');
END
$$;

-- `previous_mail_event` is the mail_event_id of the participation before the change.
CREATE OR REPLACE FUNCTION append_participation_changed(
  change participation, provider uuid, cause text, from_state text, origin jsonb, previous_mail_event uuid, ordinal integer,
  source uuid DEFAULT NULL, source_ordinal integer DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO outbox (id, subject, type, payload, request_id, traceparent)
  VALUES (
    CASE WHEN origin ->> 'subject' = 'scheduling.calendar.v1.participation-changed' THEN change.mail_event_id ELSE uuidv7() END,
    origin ->> 'subject', 'scheduling.events.v1.ParticipationChanged',
    participation_changed(change, provider, cause, from_state, origin ->> 'subject', origin ->> 'actor', previous_mail_event, ordinal, source, source_ordinal),
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
  who text := coalesce(origin ->> 'actor', 'service');
  payload bytea := convert_to(concat(
    chr(10), chr(length(place.crm_id)), place.crm_id,
    chr(18), '$', place.id,
    chr(26), '$', place.provider_id,
    chr(32), chr(CASE change WHEN 'CREATED' THEN 1 WHEN 'CANCELLED' THEN 2 WHEN 'DELETED' THEN 3 END),
    CASE WHEN change <> 'CREATED' THEN chr(40) || chr(array_position('{ACTIVE,CANCELLED}'::text[], place.state)) END,
    chr(48), proto_varint(place.revision + CASE WHEN change = 'CREATED' THEN 0 WHEN place.state = 'ACTIVE' THEN 1 ELSE 2 END),
    chr(58), chr(length(who)), who,
    chr(64), proto_varint(CASE WHEN change = 'CREATED' THEN 1 ELSE place.event_count + 1 END),
    CASE WHEN place.capacity > 0 THEN chr(72) || proto_varint(place.capacity::integer) END), 'LATIN1');
BEGIN
  INSERT INTO outbox (subject, type, payload, request_id, traceparent)
  VALUES (
    'scheduling.calendar.v1.appointment-changed', 'scheduling.events.v1.AppointmentChanged', payload,
    coalesce(origin ->> 'request_id', gen_random_uuid()::text), origin ->> 'traceparent');
END
$$;
