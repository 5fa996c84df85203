export { createService, type RunningService } from './create-service.ts';
export { createProviderCache, type ProviderCache, type ProviderKey } from './provider-cache.ts';
export { createProviderNames, type ProviderNames } from './provider-names.ts';
export { readServiceSettings } from './settings.ts';
