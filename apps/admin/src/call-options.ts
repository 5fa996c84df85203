import { type ClientOptions, openCredentials } from '@scheduling/rpc';
import { createLogger } from '@scheduling/runtime';
import { readConfig } from './config.ts';

let options: ClientOptions | undefined;

/**
 * How services are called: with the certificate in `GRPC_TLS_*`, else in plain text. Throws an error that names the
 * file at fault.
 */
export function callOptions(): ClientOptions {
  options ??= {
    credentials: openCredentials({
      files: readConfig(process.env).certificates,
      logger: createLogger({ service: 'admin', level: 'silent' }),
    }),
  };
  return options;
}
