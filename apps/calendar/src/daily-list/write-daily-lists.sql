-- Writes the daily lists of a CRM that are due (interface 6.5, 10.4), each as an event, and notes for each of the providers that the list of this day is done, in one
-- transaction. A day without appointments has no event. Whoever has the mark of a provider decides. Others do not wait: another replica is writing the list, or the rule
-- is being set, and the next round comes soon.
--
-- Request: crmId; lists: of each provider whose hour has come providerId, hour, listedOn as they were read, date, dayStart and dayEnd, and expiresAt; origin (see
--   append-events.sql).
-- Answer: how many events were written.
CREATE OR REPLACE FUNCTION write_daily_lists(request jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  written integer;
BEGIN
  WITH due AS MATERIALIZED (
    SELECT list.*
      FROM jsonb_to_recordset(request -> 'lists')
        AS list ("providerId" uuid, hour integer, "listedOn" date, date date, "dayStart" timestamptz, "dayEnd" timestamptz, "expiresAt" timestamptz)
      JOIN daily_list_mark AS mark ON mark.crm_id = the_crm AND mark.provider_id = list."providerId"
      JOIN booking_rules AS rules ON rules.crm_id = the_crm AND rules.provider_id = list."providerId"
     WHERE mark.listed_on IS NOT DISTINCT FROM list."listedOn" AND rules.daily_list = list.hour
       FOR NO KEY UPDATE OF mark SKIP LOCKED
  ), done AS (
    UPDATE daily_list_mark AS mark SET listed_on = due.date FROM due WHERE mark.crm_id = the_crm AND mark.provider_id = due."providerId"
  )
  INSERT INTO outbox (subject, data, request_id, traceparent)
  SELECT 'scheduling.calendar.v1.daily-list-due',
         json_build_object('crmId', the_crm, 'providerId', "providerId", 'date', date, 'expiresAt', moment_json("expiresAt")),
         coalesce(request #>> '{origin,request_id}', gen_random_uuid()::text), request #>> '{origin,traceparent}'
    FROM due
   WHERE EXISTS (SELECT FROM day_appointments(the_crm, "providerId", "dayStart", "dayEnd"));
  GET DIAGNOSTICS written = ROW_COUNT;
  RETURN to_jsonb(written);
END
$$;
