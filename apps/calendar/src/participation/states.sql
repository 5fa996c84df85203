-- The states of a participation (interface 3.1). Called by other functions and by queries.

-- Whether a participation takes one of the seats of its appointment.
CREATE OR REPLACE FUNCTION takes_seat(state text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT state IN ('RESERVED', 'BOOKED')
$$;

-- Whether the participant expects the appointment to take place. If so, the state can be entered only while the appointment is not cancelled, the participant
-- is notified of a cancellation by mail (interface 3.2), and the participation blocks the deletion of the customer (interface 4.4).
CREATE OR REPLACE FUNCTION is_active(state text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT state IN ('RESERVED', 'REQUESTED', 'BOOKED')
$$;

-- Whether a participation that is created in this state is confirmed or acknowledged by mail.
CREATE OR REPLACE FUNCTION has_mail_on_creation(state text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT state IN ('REQUESTED', 'BOOKED')
$$;

-- The changes of state that are allowed, and whether the participant gets a mail about each.
CREATE OR REPLACE FUNCTION transitions() RETURNS TABLE (from_state text, to_state text, has_mail boolean) LANGUAGE sql IMMUTABLE AS $$
  VALUES
    ('RESERVED', 'BOOKED', true),
    ('REQUESTED', 'BOOKED', true),
    ('REQUESTED', 'CANCELED', true),
    ('BOOKED', 'CANCELED', true),
    ('RESERVED', 'CANCELED', false),
    ('DELETED', 'CANCELED', false),
    ('BOOKED', 'DELETED', false)
$$;

-- Why a participation cannot change to another state, as an answer; null if it can.
CREATE OR REPLACE FUNCTION transition_error(present text, wanted text, appointment_state text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF wanted IN ('RESERVED', 'REQUESTED') THEN
    RETURN error_answer('participation.state_unsupported', jsonb_build_object(
      'text', format('A participation cannot be moved to %s; create a new one instead.', wanted),
      'errors', jsonb_build_array(jsonb_build_object('pointer', '/state', 'detail', format('cannot be %s in an update', wanted)))));
  END IF;
  IF is_active(wanted) AND appointment_state <> 'ACTIVE' THEN
    RETURN error_answer('appointment.cancelled', CASE present WHEN 'CANCELED' THEN jsonb_build_object('text',
      'The booking was cancelled, and its appointment with it. Neither comes back: list the slots, and book again with a new reference.') ELSE '{}' END);
  END IF;
  IF EXISTS (SELECT FROM transitions() WHERE from_state = present AND to_state = wanted) THEN RETURN NULL; END IF;
  RETURN error_answer('participation.move_not_allowed', jsonb_build_object('text', format(
    'A participation that is %s cannot become %s; allowed from here: %s.', present, wanted,
    coalesce((SELECT string_agg(to_state, ' and ' ORDER BY to_state) FROM transitions() WHERE from_state = present), 'nothing'))));
END
$$;

-- The last version of a participation that a mail can be about: not that the person will be there, which is the last change as long as it is noted of a booking, and
-- not what the CRM notes.
CREATE OR REPLACE FUNCTION last_mailable_version(participation participation) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT coalesce(
    participation.mailable_version,
    participation.version - (participation.state = 'BOOKED' AND participation.attendance_confirmed_at IS NOT NULL)::integer)
$$;

-- When a reservation that is made now expires (interface 8); null for another state.
CREATE OR REPLACE FUNCTION expiry_of(state text, the_crm text) RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN state = 'RESERVED' THEN scheduling_now(the_crm) + interval '180 seconds' END
$$;
