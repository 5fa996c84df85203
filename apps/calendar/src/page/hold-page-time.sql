-- Holds a place for a person at a booking page, as book_slot does, unless too much is held already: at most `maxHolds` places of the provider at a time, and of those that
-- are free on the day of the slot a quarter, but at least one. So pages that only hold leave a day three quarters free.
--
-- Request: that of book_slot for a RESERVED participation, maxHolds, dayStart, dayEnd, and freePlaces, of that day.
-- Answer: that of book_slot; with notHeld, nothing was made.
CREATE OR REPLACE FUNCTION hold_page_time(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  present timestamptz;
  held record;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('page holds ' || the_provider, 0));
  present := scheduling_now(the_crm);
  SELECT count(*) AS places, count(*) FILTER (
      WHERE appointment.starts_at >= (request ->> 'dayStart')::timestamptz AND appointment.starts_at < (request ->> 'dayEnd')::timestamptz) AS that_day
    INTO held
    FROM participation
    JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
   WHERE participation.crm_id = the_crm AND participation.reserved_until > present AND participation.reference LIKE 'page-%'
     AND appointment.provider_id = the_provider;
  IF held.places >= (request ->> 'maxHolds')::integer OR held.that_day >= greatest(1, ((request ->> 'freePlaces')::integer + held.that_day) / 4) THEN
    RETURN jsonb_build_object('id', request ->> 'id', 'created', false, 'notHeld', true);
  END IF;
  RETURN book_slot(request);
END
$$;
