import { DomainError, type FieldError } from '@scheduling/errors';
import { isCrmEventType, notACrmEventType } from '@scheduling/events';
import type { WebhookDependencies } from '../dependencies.ts';
import { checkUrl } from '../endpoint/check-url.ts';

/** What a CRM may choose; undefined: it does not say. */
export interface WebhookSettings {
  url?: string | undefined;
  types?: string[] | undefined;
  /** Empty: no provider. */
  providerReference?: string | undefined;
  ignoreActors?: string[] | undefined;
}

export interface StoredSettings {
  url?: string;
  types?: string[];
  providerId?: string | null;
  ignoreActors?: string[];
}

const maxIgnoredActors = 50;

/** Rejects with `webhook.invalid`, naming the fields, or `provider.not_found`. */
export async function readSettings(
  dependencies: WebhookDependencies,
  crmId: string,
  settings: WebhookSettings,
): Promise<StoredSettings> {
  const { url, types, providerReference, ignoreActors } = settings;
  const errors: FieldError[] = (types ?? []).flatMap((type, index) =>
    isCrmEventType(type) ? [] : [{ pointer: `/types/${index}`, detail: notACrmEventType }],
  );
  const fault = url === undefined ? undefined : checkUrl(url, dependencies);
  if (fault !== undefined) errors.push({ pointer: '/url', detail: fault });
  if ((ignoreActors?.length ?? 0) > maxIgnoredActors)
    errors.push({ pointer: '/ignoreActors', detail: `must have at most ${maxIgnoredActors} elements` });
  if (errors.length > 0) throw new DomainError('webhook.invalid', { errors });
  return {
    ...(url !== undefined && { url: new URL(url).href }),
    ...(types && { types: [...new Set(types)].toSorted() }),
    ...(providerReference !== undefined && {
      providerId:
        providerReference === '' ? null : await dependencies.providers.requireId({ crmId, providerReference }),
    }),
    ...(ignoreActors && { ignoreActors: [...new Set(ignoreActors)].toSorted() }),
  };
}
