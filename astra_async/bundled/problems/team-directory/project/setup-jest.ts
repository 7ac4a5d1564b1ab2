import { setupZoneTestEnv } from 'jest-preset-angular/setup-env/zone';

// What `ng build` refuses fails here too: elements and properties that a template uses and nobody declared.
setupZoneTestEnv({ errorOnUnknownElements: true, errorOnUnknownProperties: true });
