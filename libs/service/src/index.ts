export { createService, type RunningService } from './create-service.ts';
export { readServiceSettings } from './settings.ts';
