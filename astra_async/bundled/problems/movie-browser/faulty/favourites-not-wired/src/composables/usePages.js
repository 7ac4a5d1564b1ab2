import { computed, ref } from 'vue';

/**
 * A list cut into pages.
 * `items` is a ref or computed of an array, `size` how many of them a page shows.
 */
export function usePages(items, size) {
  const wanted = ref(1);

  const pages = computed(() => Math.max(1, Math.ceil(items.value.length / size)));
  const page = computed(() => Math.min(Math.max(1, wanted.value), pages.value));
  const visible = computed(() => items.value.slice((page.value - 1) * size, page.value * size));

  function go(number) {
    wanted.value = Math.min(Math.max(1, number), pages.value);
  }

  return { page, pages, visible, go };
}
