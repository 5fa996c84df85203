-- What the events of a subscription are made of, as of one moment: the provider's active appointments that start from 30 days ago until in 400 days, the first
-- 5,000 of them. A hold is no booking: it is neither counted nor shown, nor is an appointment that a booking made and that has nothing else in it.
--
-- To read and compare everybody who takes part takes ten times as long as to see that nothing can have changed. Every event about an appointment and its
-- participations is counted in event_count. What changes them without an event is the anonymisation of those of appointments that are over, and sets changed_at.
-- A sandbox can be set back to a time when they were not over. What changes a customer sets refreshed_at, and is committed within a minute; whoever is erased
-- also leaves the participation.
--
-- Request: crmId, subscriptionId, textVersion (of what the facts are written as), and if the reader has one, version (see changedAt).
-- Answer: no row if there is no such subscription.
--   digest        of the facts that were shown last, in hex; null: never
--   "changedAt"   since when they are what they are, in seconds since 1970; null: never
--   fingerprint   equal to that of the subscription if nothing can have changed since comparedAt
--   "comparedAt"  the time of this reading
--   "isUnchanged" whether nothing can have changed
--   facts         lines of JSON in the order of the events: AppointmentFacts in describe-appointment.ts; null if nothing can have changed and the reader has this
--                 version
--   shown         since when the event of each appointment is what it is, by id; null if the reader has this version
-- In every appointment at most 200 of those who take part are named, and 10,000 in all.
CREATE OR REPLACE FUNCTION read_calendar(request jsonb)
RETURNS TABLE (digest text, "changedAt" bigint, fingerprint text, "comparedAt" timestamptz, "isUnchanged" boolean, facts text, shown json)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  present timestamptz := scheduling_now(the_crm);
  compared_now timestamptz := clock_timestamp();
  subscription calendar_subscription;
  reader_is_current boolean;
  appointment_ids uuid[];
  new_fingerprint text;
  nothing_changed boolean;
  all_facts text;
BEGIN
  SELECT * INTO subscription FROM calendar_subscription WHERE crm_id = the_crm AND id = (request ->> 'subscriptionId')::uuid;
  IF NOT FOUND THEN RETURN; END IF;
  reader_is_current := coalesce(extract(epoch FROM subscription.changed_at)::bigint = (request ->> 'version')::bigint, false);

  -- Planned for these values: which index is best depends on them. With EXISTS, Postgres might read all participations.
  EXECUTE concat(
    'SELECT coalesce(array_agg(id ORDER BY starts_at, id), ''{}''),
            md5(concat($7, string_agg(concat(id, '' '', event_count, '' '', revision, '' '', CASE WHEN ends_at <= $8 THEN (
              SELECT coalesce(string_agg(participation.changed_at::text, '','' ORDER BY participation.id), ''nobody'')
                FROM participation
               WHERE participation.crm_id = $1 AND participation.appointment_id = listed.id) END), E''\n'' ORDER BY starts_at, id)))
       FROM (
         SELECT id, starts_at, ends_at, event_count, revision
           FROM appointment
          WHERE crm_id = $1 AND provider_id = $2 AND starts_at >= $3 AND starts_at < $4 AND state = ''ACTIVE''
            AND (when_empty IS NULL OR (
              SELECT true FROM participation
               WHERE participation.crm_id = $1 AND participation.appointment_id = appointment.id AND participation.state IN (''BOOKED'', ''REQUESTED'')
               LIMIT 1))',
    CASE WHEN subscription.resource_reference IS NOT NULL THEN ' AND resource_reference = $5' END,
    CASE WHEN subscription.contact_reference IS NOT NULL THEN ' AND contact_reference = $6' END,
    '      ORDER BY starts_at, id
          LIMIT 5000) AS listed')
    INTO appointment_ids, new_fingerprint
    USING the_crm, subscription.provider_id, present - interval '720 hours', present + interval '9600 hours',
      subscription.resource_reference, subscription.contact_reference, request ->> 'textVersion',
      CASE
        WHEN subscription.details = 'NONE' THEN '-infinity'
        WHEN EXISTS (SELECT FROM sandbox_clock WHERE crm_id = the_crm) THEN 'infinity'
        ELSE present END;
  nothing_changed := coalesce(subscription.fingerprint = new_fingerprint, false) AND (subscription.details = 'NONE' OR NOT EXISTS (
    SELECT FROM customer
     WHERE customer.crm_id = the_crm AND customer.provider_id = subscription.provider_id
       AND customer.refreshed_at > subscription.compared_at - interval '1 minute'));

  IF NOT (nothing_changed AND reader_is_current) THEN
    SELECT coalesce(string_agg(
        json_build_array(
          listed.id, extract(epoch FROM listed.starts_at)::bigint, extract(epoch FROM listed.ends_at)::bigint,
          listed.description, listed.product_reference, listed.address, listed.capacity, booked, requested,
          CASE WHEN subscription.details <> 'NONE' AND named <= 10000 THEN (
            SELECT json_agg(person ORDER BY participation_id)
              FROM (
                SELECT participation.id AS participation_id, CASE subscription.details
                    WHEN 'CONTACT' THEN json_build_array(
                      participation.state = 'BOOKED', coalesce(customer.user_name, participation.name), coalesce(customer.mobile, participation.mobile),
                      coalesce(customer.email, participation.email), participation.note)
                    ELSE json_build_array(participation.state = 'BOOKED', coalesce(customer.user_name, participation.name)) END AS person
                  FROM participation
                  LEFT JOIN customer ON customer.crm_id = participation.crm_id AND customer.id = participation.customer_id
                 WHERE participation.crm_id = the_crm AND participation.appointment_id = listed.id AND participation.state IN ('BOOKED', 'REQUESTED')
                 ORDER BY participation.id
                 LIMIT 200) AS persons) END)::text,
        E'\n' ORDER BY number), '')
      INTO all_facts
      FROM (
        SELECT found_appointment.*, number, booked, requested, sum(least(booked + requested, 200)) OVER (ORDER BY number) AS named
          FROM unnest(appointment_ids) WITH ORDINALITY AS wanted (appointment_id, number)
         -- For each of them, even where Postgres would rather read all appointments.
         CROSS JOIN LATERAL (
           SELECT id, starts_at, ends_at, description, product_reference, address, capacity
             FROM appointment
            WHERE appointment.crm_id = the_crm AND appointment.id = wanted.appointment_id
            LIMIT 1) AS found_appointment
         CROSS JOIN LATERAL (
           SELECT count(*) FILTER (WHERE state = 'BOOKED') AS booked, count(*) FILTER (WHERE state = 'REQUESTED') AS requested
             FROM participation
            WHERE participation.crm_id = the_crm AND participation.appointment_id = wanted.appointment_id) AS seats) AS listed;
  END IF;

  RETURN QUERY
  SELECT encode(subscription.digest, 'hex'), extract(epoch FROM subscription.changed_at)::bigint, new_fingerprint, compared_now, nothing_changed, all_facts,
    CASE WHEN NOT reader_is_current THEN (
      SELECT coalesce(json_object_agg(shown_appointment.appointment_id, extract(epoch FROM shown_appointment.changed_at)::bigint), '{}')
        FROM shown_appointment
       WHERE shown_appointment.crm_id = the_crm AND shown_appointment.subscription_id = subscription.id) END;
END
$$;
