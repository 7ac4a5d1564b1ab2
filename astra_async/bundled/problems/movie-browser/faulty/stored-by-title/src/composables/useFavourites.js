import { ref, watch } from 'vue';

const KEY = 'favourites';

/** The ids of favourite movies, kept in localStorage under the key `favourites`. */
export function useFavourites() {
  const favourites = ref(JSON.parse(localStorage.getItem(KEY) ?? '{}'));

  const isFavourite = (title) => title in favourites.value;

  function toggle(title) {
    const { [title]: known, ...others } = favourites.value;
    favourites.value = known ? others : { ...others, [title]: true };
  }

  watch(favourites, (titles) => localStorage.setItem(KEY, JSON.stringify(titles)));

  return { favourites, isFavourite, toggle };
}
