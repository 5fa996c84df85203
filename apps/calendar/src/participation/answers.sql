-- What the functions that book answer (see settle.ts):
--
-- - With `id`, that of the participation, the work is done: `created` says whether the participation is new, and `participation` is its text (participation-json.sql).
--   If something has changed, `entered` is how many participations are in each state now, or MOVED, and `seats` how many more seats they take.
-- - With `error`, the request is rejected: the fields of a DomainError.
-- - With `retry`, somebody else has to do something first: the provider (its copy has another version), the customer (calendar does not know whom the reference
--   means), the reference (an expired reservation still has it), or nobody (stale: others have changed what was read). With an error, that is why the request is
--   rejected if the customer service does not know the customer either.
--
-- Every answer may have `reclaimed`, the number of expired reservations that were removed.
--
-- All of these are called by other functions only.

CREATE OR REPLACE FUNCTION error_answer(code text, details jsonb DEFAULT '{}') RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object('error', jsonb_build_object('code', code) || details)
$$;

CREATE OR REPLACE FUNCTION retry_answer(reason text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object('retry', reason)
$$;

-- A caller that forgot to set a capacity learns that there never was a seat.
CREATE OR REPLACE FUNCTION no_seat_answer(appointment appointment) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT error_answer('participation.capacity_exhausted', CASE WHEN appointment.capacity = 0 THEN
    '{"text": "The appointment has a capacity of 0: it has no seats."}' ELSE '{}' END::jsonb)
$$;
