import type { ReferenceServiceService } from '@scheduling/contracts/calendar/v1';
import type { CustomerServiceService } from '@scheduling/contracts/customer/v1';
import type { Database } from '@scheduling/postgres';
import type { ClientOf } from '@scheduling/rpc';
import type { ProviderNames } from '@scheduling/service';
import type { WebhookSchema } from './db/schema.ts';
import type { Poster } from './endpoint/post.ts';
import type { Sealer } from './webhook/seal.ts';

export interface WebhookDependencies {
  database: Database<WebhookSchema>;
  providers: ProviderNames;
  calendar: ClientOf<typeof ReferenceServiceService>;
  customers: ClientOf<typeof CustomerServiceService>;
  poster: Poster;
  sealer: Sealer;
  /** For development: endpoints may be anywhere, and need no TLS. */
  allowPrivate: boolean;
}
