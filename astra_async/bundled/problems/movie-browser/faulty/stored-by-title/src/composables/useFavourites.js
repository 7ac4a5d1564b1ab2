import { ref, watch } from 'vue';

const KEY = 'favourites';

/** The ids of favourite movies, kept in localStorage under the key `favourites`. */
export function useFavourites() {
  const favourites = ref(JSON.parse(localStorage.getItem(KEY) ?? '{}'));

  const isFavourite = (id) => id in favourites.value;

  function toggle(id) {
    const { [id]: known, ...others } = favourites.value;
    favourites.value = known ? others : { ...others, [id]: true };
  }

  watch(favourites, (ids) => localStorage.setItem(KEY, JSON.stringify(ids)));

  return { favourites, isFavourite, toggle };
}
