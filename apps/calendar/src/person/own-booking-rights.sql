-- What the person may do with a booking by its link, at the time `present`. Called by other functions only; those that change something call it behind their locks.
--
-- Answer: until when the booking can be cancelled and moved in its state, exclusively (null: it cannot), whether that is now, and whether the person can say that they
--   will be there. Where the provider confirms bookings, a place that is confirmed cannot be exchanged for one that is not.
CREATE OR REPLACE FUNCTION own_booking_rights(participation participation, appointment appointment, present timestamptz)
RETURNS TABLE (cancellable_until timestamptz, movable_until timestamptz, is_cancellable boolean, is_movable boolean, is_confirmable boolean)
LANGUAGE sql STABLE AS $$
  SELECT until.cancel, until.move, coalesce(present < until.cancel, false), coalesce(present < until.move, false),
         participation.state = 'BOOKED' AND present < appointment.starts_at AND participation.attendance_confirmed_at IS NULL
    FROM (VALUES (1)) AS one
    LEFT JOIN booking_rules ON booking_rules.crm_id = appointment.crm_id AND booking_rules.provider_id = appointment.provider_id
   CROSS JOIN LATERAL (SELECT appointment.starts_at - make_interval(mins => coalesce(change_notice, 0)) AS notice) AS rule
   CROSS JOIN LATERAL (
     SELECT CASE participation.state WHEN 'BOOKED' THEN notice WHEN 'REQUESTED' THEN appointment.starts_at END AS cancel,
            CASE WHEN participation.moves_by_person >= 5 THEN NULL
              WHEN participation.state = 'REQUESTED' OR participation.state = 'BOOKED' AND coalesce(confirmation, 'BOOKED') = 'BOOKED' THEN notice END AS move) AS until
$$;

-- Why a person may not do what was possible until that time (null: never in this state), as an answer (see answers.sql).
CREATE OR REPLACE FUNCTION link_refusal(possible_until timestamptz) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT error_answer(CASE WHEN possible_until IS NULL THEN 'link.not_allowed' ELSE 'link.too_late' END)
$$;

-- Whether an appointment begins at another time than the request says that the person was shown (shownStart, in epoch milliseconds; absent: any time will do).
CREATE OR REPLACE FUNCTION has_other_start(appointment appointment, request jsonb) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce(epoch_ms(appointment.starts_at) <> (request ->> 'shownStart')::bigint, false);
END
$$;
