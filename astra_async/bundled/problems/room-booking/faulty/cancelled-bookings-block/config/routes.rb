Rails.application.routes.draw do
  resources :rooms, only: :index do
    resources :bookings, only: %i[index create]
  end
  resources :bookings, only: :destroy
end
