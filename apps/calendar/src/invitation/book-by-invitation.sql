-- What was made by an invitation: { crmId, id } -> booked, how many bookings and requests stand, and isLimited. What was cancelled, declined or deleted has given its
-- place back, but within a day of real time only as often again as the invitation has bookings: each of them is a mail.
CREATE OR REPLACE FUNCTION use_of_invitation(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_invitation uuid := request ->> 'id';
BEGIN
  RETURN (
    SELECT jsonb_build_object('booked', anonymised + made.standing, 'isLimited', made.of_day >= 2 * bookings)
      FROM invitation CROSS JOIN (
        SELECT count(*) FILTER (WHERE participation.state IN ('REQUESTED', 'BOOKED')) AS standing,
               count(*) FILTER (WHERE uuid_extract_timestamp(participation.id) > clock_timestamp() - interval '24 hours') AS of_day
          FROM invitation_booking
          JOIN participation ON participation.crm_id = invitation_booking.crm_id AND participation.id = invitation_booking.participation_id
         WHERE invitation_booking.crm_id = the_crm AND invitation_booking.invitation_id = the_invitation) AS made
     WHERE crm_id = the_crm AND id = the_invitation);
END
$$;

-- Why an invitation of a customer cannot be used now, as an error answer; null: it can. Whoever has called this waits for the others who use it.
CREATE OR REPLACE FUNCTION refusal_of_invitation(the_crm text, the_invitation uuid, the_customer uuid) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  permitted integer;
  used jsonb;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('page invitation ' || the_invitation, 0));
  permitted := (
    SELECT bookings FROM invitation
     WHERE crm_id = the_crm AND id = the_invitation AND customer_id = the_customer AND expires_at > scheduling_now(the_crm));
  IF permitted IS NULL THEN RETURN error_answer('link.not_found'); END IF;
  used := use_of_invitation(jsonb_build_object('crmId', the_crm, 'id', the_invitation));
  IF (used ->> 'booked')::integer >= permitted THEN RETURN error_answer('booking_page.invitation_used'); END IF;
  IF (used ->> 'isLimited')::boolean THEN RETURN error_answer('booking_page.limit_reached'); END IF;
  RETURN NULL;
END
$$;

-- Notes what was booked by an invitation. Its reference may have become that of another customer a moment ago, for whom nothing must be booked.
CREATE OR REPLACE FUNCTION note_invited(the_crm text, the_invitation uuid, the_customer uuid, the_participation uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO invitation_booking (crm_id, participation_id, invitation_id)
  SELECT crm_id, id, the_invitation FROM participation WHERE crm_id = the_crm AND id = the_participation AND customer_id = the_customer;
  IF NOT FOUND THEN RAISE EXCEPTION 'the customer of the invitation has another reference by now' USING ERRCODE = 'serialization_failure'; END IF;
END
$$;
