import { ref, watch } from 'vue';

const KEY = 'favourites';

/** The ids of favourite movies, kept in localStorage under the key `favourites`. */
export function useFavourites() {
  const favourites = ref(stored());

  const isFavourite = (id) => favourites.value.includes(id);

  function toggle(id) {
    favourites.value = isFavourite(id)
      ? favourites.value.filter((known) => known !== id)
      : [...favourites.value, id];
  }

  watch(favourites, (ids) => localStorage.setItem(KEY, JSON.stringify(ids)));

  return { favourites, isFavourite, toggle };
}

function stored() {
  try {
    const ids = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(ids) ? ids : [];
  } catch {
    return [];
  }
}
