import vue from '@vitejs/plugin-vue';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [vue()],
  test: {
    environment: 'jsdom',
    globals: true,
    testTimeout: 30000,
    reporters: ['default', 'junit'],
    outputFile: { junit: 'unit.xml' },
  },
});
