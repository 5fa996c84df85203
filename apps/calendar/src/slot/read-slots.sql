-- What the slots of a provider that begin in a period are cut from, as of one moment: timeslots, open appointments, and when the resources are occupied.
--
-- Request: crmId, providerId, providerVersion (absent: any), from and to (the period), ignoreNotice, rows (how many timeslots, and how many appointments,
--   are read), minutes (length of a slot; absent: one raster of its timeslot), and if given resourceReference, productReference (of open appointments), and leaving
--   (an appointment that occupies nothing: the booking that is moved away is all that there is in it).
-- Answer: one row, or none if the provider's row has another version. Times are in epoch milliseconds.
--   from, to      the part of the period for which this is complete: what is before the earliest bookable time is left out, and so is what did not fit into
--                 the rows. Empty, with `isLimited`, if not even one moment fits
--   isLimited     whether the rows, and not the period or the horizon, determine where it ends
--   timeslots     by start and id: [id, reference, resource, start, end, raster, details of its free places (slot-details.sql) as text, key of when they are occupied]
--   appointments  by start and id: [id, resource, start, end, details as text, whether a booking made it]
--   occupied      by key, which timeslots of a resource have in common whose places have the same buffers: the periods that a place must not overlap, because of
--                 appointments, together with the buffers between them and the place, and of blocks: [[start, end], …], in order, without overlaps
CREATE OR REPLACE FUNCTION read_slots(request jsonb)
RETURNS TABLE ("from" bigint, "to" bigint, "isLimited" boolean, timeslots json, appointments json, occupied json)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
  the_crm text := request ->> 'crmId';
  the_provider uuid := request ->> 'providerId';
  max_rows integer := request ->> 'rows';
  present timestamptz := scheduling_now(the_crm);
  slot_minutes integer := request ->> 'minutes';
  the_resource text := request ->> 'resourceReference';
  the_product text := request ->> 'productReference';
  leaving_id uuid := request ->> 'leaving';
  period_start timestamptz;
  period_end timestamptz;
  limited_end timestamptz;
  opening_ids uuid[];
  open_ids uuid[];
BEGIN
  IF NOT is_present_provider(request) THEN RETURN; END IF;

  -- The end does not belong to the period, and slots begin in whole milliseconds.
  SELECT greatest((request ->> 'from')::timestamptz, bounds.earliest), least((request ->> 'to')::timestamptz, bounds.latest + interval '1 millisecond')
    INTO period_start, period_end
    FROM booking_bounds(the_crm, the_provider, present, (request ->> 'ignoreNotice')::boolean) AS bounds;
  "isLimited" := false;

  SELECT array_agg(id ORDER BY rank) FILTER (WHERE rank <= max_rows), max(starts_at) FILTER (WHERE rank > max_rows)
    INTO opening_ids, limited_end
    FROM (
      SELECT id, starts_at, row_number() OVER (ORDER BY starts_at, id) AS rank
        FROM first_timeslots(the_crm, the_provider, the_resource, period_start, period_end, max_rows + 1)
       ORDER BY starts_at, id
       LIMIT max_rows + 1) AS listed;
  IF limited_end IS NOT NULL THEN "isLimited" := true; period_end := limited_end; END IF;

  -- One of the two halves of the union has nothing to read: which index is best depends on whether a resource is given.
  -- The product is compared after the rows were counted, so that no more of them are read.
  SELECT array_agg(id ORDER BY rank) FILTER (WHERE rank <= max_rows AND accept_bookings AND product_reference = coalesce(the_product, product_reference)),
         max(starts_at) FILTER (WHERE rank > max_rows)
    INTO open_ids, limited_end
    FROM (
      SELECT id, starts_at, accept_bookings, product_reference, row_number() OVER (ORDER BY starts_at, id) AS rank
        FROM (
          (SELECT * FROM appointment
            WHERE the_resource IS NULL
              AND crm_id = the_crm AND provider_id = the_provider AND starts_at >= period_start AND starts_at < period_end AND state = 'ACTIVE'
            ORDER BY starts_at, id LIMIT max_rows + 1)
           UNION ALL
          (SELECT * FROM appointment
            WHERE crm_id = the_crm AND provider_id = the_provider AND resource_reference = the_resource AND starts_at >= period_start AND starts_at < period_end
              AND state = 'ACTIVE'
            ORDER BY starts_at, id LIMIT max_rows + 1)) AS appointment) AS listed;
  IF limited_end IS NOT NULL THEN "isLimited" := true; period_end := limited_end; END IF;

  "from" := epoch_ms(period_start);
  "to" := epoch_ms(period_end);
  timeslots := (
    SELECT json_agg(json_build_array(
             id, reference, resource_reference, epoch_ms(starts_at), epoch_ms(ends_at), raster, details.content::text,
             occupied_key(resource_reference, buffer_before, buffer_after)) ORDER BY starts_at, id)
      FROM timeslot
     CROSS JOIN slot_details(resource_reference, NULL, NULL, NULL, default_capacity, default_capacity, address, NULL, NULL) AS details
     WHERE crm_id = the_crm AND id = ANY (opening_ids));
  appointments := (
    -- Read once for each resource, which may have many.
    WITH blocked AS MATERIALIZED (
      SELECT resource_reference, periods
        FROM (SELECT DISTINCT resource_reference FROM appointment WHERE crm_id = the_crm AND id = ANY (open_ids)) AS open,
             LATERAL (
               SELECT range_agg(tstzrange(starts_at, ends_at)) AS periods
                 FROM overlapping_blocks(the_crm, the_provider, open.resource_reference, period_start, 'infinity')) AS of_resource
       WHERE periods IS NOT NULL)
    SELECT json_agg(json_build_array(
             id, resource_reference, epoch_ms(starts_at), epoch_ms(ends_at), details.content::text, when_empty IS NOT NULL) ORDER BY starts_at, id)
      FROM appointment
     CROSS JOIN occupancy(appointment, present) AS seats
     CROSS JOIN appointment_slot_details(appointment, seats.taken) AS details
     WHERE crm_id = the_crm AND id = ANY (open_ids) AND starts_at < period_end AND NOT seats.abandoned AND seats.taken < capacity
       AND NOT EXISTS (
         SELECT FROM blocked WHERE blocked.resource_reference = appointment.resource_reference AND periods && tstzrange(starts_at, ends_at)));
  occupied := (
    SELECT json_object_agg(occupied_key(resource_reference, buffer_before, buffer_after), periods)
      FROM (
        SELECT opening.resource_reference, opening.buffer_before, opening.buffer_after, (
            SELECT json_agg(json_build_array(epoch_ms(lower(period)), epoch_ms(upper(period))) ORDER BY period)
              FROM unnest((
                SELECT range_agg(busy)
                  FROM (
                    SELECT tstzrange(
                             starts_at - make_interval(mins => greatest(opening.buffer_after, buffer_before)),
                             ends_at + make_interval(mins => greatest(opening.buffer_before, buffer_after))) AS busy
                      FROM near_appointments(
                             the_crm, the_provider, opening.resource_reference, period_start, opening.until, opening.buffer_before, opening.buffer_after) AS appointment
                     -- Only what a booking made can be abandoned: of others, no participations are read.
                     WHERE (when_empty IS NULL OR NOT (SELECT abandoned FROM occupancy(appointment, present))) AND id IS DISTINCT FROM leaving_id
                     UNION ALL
                    SELECT tstzrange(starts_at, ends_at)
                      FROM overlapping_blocks(the_crm, the_provider, opening.resource_reference, period_start, opening.until)) AS of_resource)) AS period) AS periods
          FROM (
            SELECT resource_reference, buffer_before, buffer_after,
                   least(period_end + make_interval(mins => coalesce(slot_minutes, max(raster)::integer)), max(ends_at)) AS until
              FROM timeslot
             WHERE crm_id = the_crm AND id = ANY (opening_ids)
               -- Others have no place of this length.
               AND (slot_minutes IS NULL OR slot_minutes % raster = 0 AND ends_at - starts_at >= make_interval(mins => slot_minutes))
             GROUP BY resource_reference, buffer_before, buffer_after) AS opening) AS of_resources
     WHERE periods IS NOT NULL);
  RETURN NEXT;
END
$$;
