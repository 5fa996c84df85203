-- What the person of a participation was told of the appointment before the mail about one version: what it was before the first change after the version of which
-- they know. Null if there was no such change, and if one without a mail came since: nobody knows then what the person knows. Called by
-- read_participation_mail_data only.
CREATE OR REPLACE FUNCTION told_before(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  the_crm text := request ->> 'crmId';
  the_participation uuid := request ->> 'participationId';
  the_version integer := request ->> 'version';
  told integer := coalesce(
    (request ->> 'toldVersion')::integer,
    (SELECT max(version) FROM participation_previous WHERE crm_id = the_crm AND participation_id = the_participation AND version < the_version), 0);
BEGIN
  RETURN (
    SELECT jsonb_build_object('startsAt', previous.starts_at, 'endsAt', previous.ends_at, 'description', previous.description, 'address', previous.address)
      FROM participation_previous AS previous
      JOIN participation ON participation.crm_id = previous.crm_id AND participation.id = previous.participation_id
     WHERE previous.crm_id = the_crm AND previous.participation_id = the_participation AND previous.version > told AND previous.version <= the_version
       AND coalesce(participation.untold_version, 0) <= told
     ORDER BY previous.version
     LIMIT 1);
END
$$;

-- What a mail about one version of a participation needs, as it is now (interface 6).
--
-- Request: crmId, participationId, version; toldVersion, of which the person knows time, place and title (absent: that of the change with a mail before).
-- Answer: the fields of ParticipationMailData in get-participation-mail-data.ts, times as text; null if there is no such participation, or if it is an expired reservation.
CREATE OR REPLACE FUNCTION read_participation_mail_data(request jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  present timestamptz := scheduling_now(request ->> 'crmId');
BEGIN
  RETURN (
    SELECT jsonb_build_object(
        'currentVersion', last_mailable_version(participation),
        'reference', participation.reference, 'customerId', participation.customer_id,
        'name', participation.name, 'email', participation.email, 'mobile', participation.mobile, 'note', participation.note, 'state', participation.state,
        'message', (
          SELECT text FROM participation_message AS message
           WHERE message.crm_id = participation.crm_id AND message.participation_id = participation.id AND message.version = (request ->> 'version')::bigint),
        'providerId', appointment.provider_id, 'contactReference', appointment.contact_reference, 'description', appointment.description, 'startsAt', appointment.starts_at, 'endsAt', appointment.ends_at,
        'address', appointment.address, 'priceValue', appointment.price_value, 'priceCurrency', appointment.price_currency,
        'previous', told_before(request),
        'selfService', coalesce(rules.self_service, rules.page, false),
        'hasPublicPage', coalesce(rules.page AND rules.access = 'PUBLIC', false),
        'cancellableUntil', CASE WHEN rights.is_cancellable THEN rights.cancellable_until END,
        'movableUntil', CASE WHEN rights.is_movable THEN rights.movable_until END)
      FROM participation
      JOIN appointment ON appointment.crm_id = participation.crm_id AND appointment.id = participation.appointment_id
      LEFT JOIN booking_rules AS rules ON rules.crm_id = appointment.crm_id AND rules.provider_id = appointment.provider_id
     CROSS JOIN own_booking_rights(participation, appointment, present) AS rights
     WHERE participation.crm_id = request ->> 'crmId' AND participation.id = (request ->> 'participationId')::uuid
       AND (participation.reserved_until IS NULL OR participation.reserved_until > present));
END
$$;
