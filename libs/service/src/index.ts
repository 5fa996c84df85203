export { type Composition, createService, type Foundation, type RunningService } from './create-service.ts';
export { readServiceSettings, type ServiceSettings } from './settings.ts';
