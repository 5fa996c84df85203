export { createInstance, type InstanceOptions } from './create-instance.ts';
export { MalformedRequest, TooManyStrangers } from './errors.ts';
export { baseStyle, basePathOf, contentHash, createRenderer, pagePolicy, type RenderTemplate } from './html-page.ts';
export { type RawFailure, type RawResponse, type RespondToFailure } from './raw-responses.ts';
export { addRequestHooks, announcedBytes, closedSignal, noteArrival, withNewDeadline } from './request-hooks.ts';
export { createRequestMetrics, type RecordRequest } from './request-metrics.ts';
export { stopServing, untilClientsHaveLeft } from './stop-serving.ts';
export { createStrangers, delayRejection, slowDown, type Strangers } from './strangers.ts';
