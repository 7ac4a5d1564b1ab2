import { ref } from 'vue';

/** The ids of favourite movies, kept in localStorage under the key `favourites`. */
export function useFavourites() {
  const favourites = ref([]);

  const isFavourite = (id) => favourites.value.includes(id);

  function toggle(id) {
    favourites.value = isFavourite(id)
      ? favourites.value.filter((known) => known !== id)
      : [...favourites.value, id];
  }

  return { favourites, isFavourite, toggle };
}
