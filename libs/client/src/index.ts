export type { components, operations, paths } from './api.ts';
export type { ClientOptions } from './client-options.ts';
export { type Client, createClient } from './create-client.ts';
export { type ListPath, paginate } from './paginate.ts';
export { type Problem, type ProblemCode, ProblemError } from './problem-error.ts';
export { type Event, verifyWebhook, WebhookVerificationError } from './verify-webhook.ts';
