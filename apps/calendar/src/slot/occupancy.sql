-- How an appointment is taken at a moment, whether or not the rows of expired reservations still exist: `taken` seats, and whether it is `abandoned`,
-- which means that it was made by a booking and has nobody in it. An abandoned appointment counts as not existing: whoever needs its place ends it.
-- Inlined into queries, because it is a single SELECT, STABLE and not STRICT.
CREATE OR REPLACE FUNCTION occupancy(appointment appointment, present timestamptz) RETURNS TABLE (taken bigint, abandoned boolean) LANGUAGE sql STABLE AS $$
  SELECT appointment.taken - expired.seats,
         appointment.when_empty IS NOT NULL AND appointment.taken = expired.seats AND NOT EXISTS (
           SELECT FROM participation
            WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id AND participation.state = 'REQUESTED')
    FROM (
      SELECT count(*) AS seats FROM participation
       WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id AND participation.reserved_until <= present) AS expired
$$;

-- Whether an appointment is no more at a moment, although its row still exists: it was made by a booking, and nobody but reservations that have expired has ever been in it.
-- One that somebody else has been in is still shown until it is cancelled (end_if_empty). Inlined as well.
CREATE OR REPLACE FUNCTION ended(appointment appointment, present timestamptz) RETURNS TABLE (ended boolean) LANGUAGE sql STABLE AS $$
  SELECT appointment.when_empty = 'REMOVED' AND appointment.state = 'ACTIVE' AND NOT EXISTS (
           SELECT FROM participation
            WHERE participation.crm_id = appointment.crm_id AND participation.appointment_id = appointment.id
              AND (participation.reserved_until IS NULL OR participation.reserved_until > present))
$$;
